# SPDX-License-Identifier: Apache-2.0
"""Files that call each other in a circle are read as one: three at most.

usage: calls_test.py SOURCE_ROOT BUILD"""

import collections
import sys

import sources

MOST = 3


def calls(root, build):
    """{source: the sources whose functions it names}."""
    found = sources.objects(root, build)
    owner = {name: item.source for item in found for name, kind in item.defined.items() if kind == 'T'}
    graph = collections.defaultdict(set)
    for item in found:
        graph[item.source] |= {owner[name] for name in item.wanted & owner.keys()} - {item.source}
    return graph


def reachable(graph, start):
    seen, left = set(), [start]
    while left:
        for other in graph[left.pop()] - seen:
            seen.add(other)
            left.append(other)
    return seen


def circles(graph):
    """The largest sets of sources each of which leads to each other."""
    reached = {source: reachable(graph, source) for source in list(graph)}
    found, done = [], set()
    for source in sorted(graph):
        circle = {other for other in reached[source] if source in reached[other]}
        if source not in done and circle:
            found.append(sorted(circle | {source}))
            done |= circle
    return found


def main(root, build):
    graph = calls(root, build)
    wide = [' '.join(circle) for circle in circles(graph) if len(circle) > MOST]
    return sources.report([
        ('the build has calls between files', [] if len(graph) > 100 else [f'only {len(graph)}']),
        (f'no circle of calls goes through more than {MOST} files', wide),
    ])


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:]))
