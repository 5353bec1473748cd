#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""metrics.md, the rules for alerts in it, and the dashboard agree with the metrics that hvd writes.

usage: metrics_test.py SOURCE_ROOT"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

from report import end, report

root = sys.argv[1]
VARIABLES = {'${label}': 'job', '$job': '1', '$step': '0', '$__rate_interval': '1m'}
WORDS = {'by', 'on', 'group_left', 'and', 'sum', 'max', 'rate', 'increase', 'topk', 'scalar', 'time', 'changes'}
COMMON = {'job', 'step', 'user', 'node'}


def read(*path):
    with open(os.path.join(root, *path), encoding='utf-8') as file:
        return file.read()


def check_table(source, page):
    """Returns {metric: its labels} of the page."""
    written = set(re.findall(r'"(hvd_\w+)"', source))
    rows = re.findall(r'^\| `(hvd_\w+)` \| (\w+) \| ([^|]*)\|', page, re.M)
    report({name for name, _, _ in rows} == written and len(rows) == len(written),
           'metrics.md lists each metric that hvd writes, and no other',
           written ^ {name for name, _, _ in rows})
    wrong = [name for name, kind, _ in rows if (kind == 'counter') != name.endswith('_total')]
    report(not wrong, 'the names of counters, and no others, end in _total', wrong)
    return {name: COMMON | set(re.findall(r'`(\w+)`', labels)) for name, _, labels in rows}


def alerts(page):
    """The rules in the page, as a file."""
    lines = re.search(r'\n    groups:\n(?:    [^\n]*\n)+', page).group(0).split('\n')
    return '\n'.join(line[4:] for line in lines)


def strange(expression, metrics):
    """Words of a query that are neither PromQL nor a metric or label that exists."""
    bare = re.sub(r'"[^"]*"|\[[^\]]*\]', ' ', expression)
    names = {name for name in re.findall(r'[a-zA-Z_]\w*', bare)} - WORDS
    known = names & set(metrics)
    labels = set().union(*(metrics[name] for name in known), COMMON)
    return names - known - labels


def check_promql(rules, promise):
    if not shutil.which('promtool'):
        report(True, f'{promise} # SKIP promtool is not installed (package prometheus)')
        return
    with tempfile.NamedTemporaryFile('w', suffix='.yml') as file:
        file.write(rules)
        file.flush()
        done = subprocess.run(['promtool', 'check', 'rules', file.name], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, universal_newlines=True)
    report(done.returncode == 0 and 'SUCCESS' in done.stdout, promise, done.stdout)


def put_in(query):
    for variable, value in VARIABLES.items():
        query = query.replace(variable, value)
    return query


def main():
    page = read('contrib', 'docs', 'metrics.md')
    metrics = check_table(read('collectives', 'trace', 'metrics_text.c'), page)
    board = json.loads(read('contrib', 'grafana', 'hvd_jobs.json'))
    queries = {panel['title']: [put_in(each['expr']) for each in panel['targets']] for panel in board['panels']}
    found = {title: strange(query, metrics) for title, each in queries.items() for query in each}
    report(len(queries) > 9 and not any(found.values()), 'the dashboard asks for metrics and labels that exist', found)
    planted = strange('sum by (colour) (rate(hvd_none_total[1m]))', metrics)
    report(planted == {'colour', 'hvd_none_total'}, 'a planted name that does not exist is found', planted)
    rules = alerts(page)
    found = {line for line in re.findall(r'expr: ([^#\n]*)', rules) if strange(line, metrics)}
    report('expr:' in rules and not found, 'the alerts ask for metrics and labels that exist', found)
    check_promql(rules, 'the alerts in metrics.md are rules of Prometheus')
    recorded = [{'record': f'a:b{number}', 'expr': query} for number, query in enumerate(sum(queries.values(), []))]
    check_promql(json.dumps({'groups': [{'name': 'board', 'rules': recorded}]}), 'the queries of the dashboard are PromQL')
    end()


main()
