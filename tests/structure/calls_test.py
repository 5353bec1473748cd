# SPDX-License-Identifier: Apache-2.0
"""No files call each other in a circle, so that each can be read with only those below it.

usage: calls_test.py SOURCE_ROOT BUILD"""

import collections
import os
import sys

import sources


def calls(root, build):
    """Returns {source: the sources whose functions it calls}."""
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
    """Returns the largest sets of sources in which calls lead from each source to each other one."""
    reached = {source: reachable(graph, source) for source in list(graph)}
    found, done = [], set()
    for source in sorted(graph):
        circle = {other for other in reached[source] if source in reached[other]}
        if source not in done and circle:
            found.append(sorted(circle | {source}))
            done |= circle
    return found


def unseen(graph, root, build):
    """Returns the folders of collectives that the build compiles, but whose calls are not found."""
    folders = {os.path.dirname(source) for source in sources.compiled(root, build).values()
               if source.startswith('collectives/')}
    return sorted(folders - {os.path.dirname(source) for source in graph if graph[source]})


def main(root, build):
    graph = calls(root, build)
    return sources.report([
        ('the build has calls between files', [] if len(graph) > 100 else [f'only {len(graph)}']),
        ('calls of each folder of collectives are found, also of gpu/module', unseen(graph, root, build)),
        ('no files call each other in a circle', [' '.join(circle) for circle in circles(graph)]),
    ])


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:]))
