#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws what hvd-bench --json has written:

    plot.py RESULTS.json [RESULTS.json ...] OUT.png OUT.svg

For each collective, type and operation: the time and the bus bandwidth against the size, one line
for each library, with the quartiles as a band. Results of jobs of different sizes are told apart
by their ranks, and a third picture shows how many times faster hvd is than each peer, at the
largest size, against the ranks. --check instead of files: whether anything can be drawn. Needs matplotlib (Debian: python3-matplotlib).
"""

import collections
import json
import os
import sys

try:
    import matplotlib
except ImportError:
    sys.exit('plot.py: needs matplotlib; on Debian: apt-get install python3-matplotlib')
matplotlib.use('Agg')
import matplotlib.pyplot as plt  # noqa: E402
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator  # noqa: E402

OWN = ('team', 'runtime', 'one')
LABELS = {'team': 'hvd, team', 'runtime': 'hvd, runtime', 'limit': 'limit (hand-written)',
          'ucx-limit': 'limit (UCX alone)', 'mpi': 'MPI', 'torch': 'torch, Gloo',
          'horovod': 'Horovod, Gloo', 'one': 'hvd, one tensor'}
COLOURS = {'team': '#0b5fa5', 'runtime': '#4ea3de', 'limit': '#777777', 'ucx-limit': '#777777',
           'mpi': '#c8501e', 'gloo': '#8a4fae', 'torch': '#8a4fae',
           'horovod': '#2f8f4e', 'one': '#9ccbee', 'builtin': '#9ccbee'}
STYLES = ('-', '--', ':', '-.')


def size_text(size, _=None):
    for unit, shift in (('G', 30), ('M', 20), ('K', 10)):
        if size >= 1 << shift:
            return f'{size / (1 << shift):g}{unit}'
    return f'{size:g}'


def title_of(row):
    words = [row['collective']] + [row[name] for name in ('dtype', 'op') if row[name]]
    words += [f"as {row['wire']}"] if row.get('wire') else []
    return ' '.join(words) + (', in place' if row['in_place'] else '')


def plural(count, thing):
    return f'{count} {thing}' + ('' if count == 1 else 's')


def machine_of(document):
    """Ranks, layout and machine, in a line."""
    nodes, each = document['nodes'], document['layout'].split(',')
    layout = f'{nodes} x {each[0]}' if len(set(each)) == 1 else ','.join(each[:8])
    hosts = document['hosts']
    machine = [', '.join(hosts[:2]) + (', ...' if len(hosts) > 2 else ''),
               plural(document['cores'], 'core')]
    machine += [document['processor']] if document.get('processor') else []
    return (f"{plural(document['ranks'], 'rank')} on {plural(nodes, 'node')}, layout {layout}: "
            + ', '.join(machine))


def read(paths):
    """{title: {(who, ranks): [rows by size]}}, and a line on each machine; lists of gradients are
    not on the size axis."""
    machines = {}
    pictures = collections.defaultdict(lambda: collections.defaultdict(list))
    for path in paths:
        with open(path) as file:
            document = json.load(file)
        machines[machine_of(document)] = True
        for row in document['rows']:
            if not row['list'] and row['bytes'] > 0:
                pictures[title_of(row)][row['who'], row['ranks']].append(row)
    for lines in pictures.values():
        for rows in lines.values():
            rows.sort(key=lambda row: row['bytes'])
    return pictures, list(machines)


def size_axis(axes):
    axes.set_xscale('log', base=2)
    axes.xaxis.set_major_locator(LogLocator(base=8, numticks=12))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(size_text))
    axes.set_xlabel('bytes')
    axes.grid(True, color='#dddddd', linewidth=0.6)


def draw_lines(axes, lines, figure, band):
    all_ranks = sorted({ranks for _, ranks in lines})
    for (who, ranks), rows in sorted(lines.items(), key=lambda line: line[0][1]):
        sizes = [row['bytes'] for row in rows]
        label = LABELS.get(who, who) + (f', {ranks} ranks' if len(all_ranks) > 1 else '')
        axes.plot(sizes, [row[figure] for row in rows], label=label, marker='.',
                  color=COLOURS.get(who), linestyle=STYLES[all_ranks.index(ranks) % len(STYLES)])
        if band:
            axes.fill_between(sizes, [row['q1_us'] for row in rows],
                              [row['q3_us'] for row in rows], alpha=0.15, linewidth=0,
                              color=COLOURS.get(who))
    size_axis(axes)


def draw_speed_up(axes, lines):
    """At the largest size that all have."""
    ranks = sorted({ranks for _, ranks in lines})
    size = min(rows[-1]['bytes'] for rows in lines.values())
    times = {key: row['over_hvd'] for key, rows in lines.items()
             for row in rows if row['bytes'] == size}
    for who in dict.fromkeys(who for who, _ in lines):
        if who not in OWN:
            axes.plot(ranks, [times.get((who, count), float('nan')) for count in ranks],
                      marker='o', label=LABELS.get(who, who), color=COLOURS.get(who))
    axes.axhline(1, color='#333333', linewidth=0.8)
    axes.set_xticks(ranks)
    axes.set_xlabel('ranks')
    axes.set_ylabel(f'speed-up of hvd over it, {size_text(size)}')
    axes.grid(True, color='#dddddd', linewidth=0.6)


def draw(pictures, machines, has_ranks):
    columns = 3 if has_ranks else 2
    figure, grid = plt.subplots(len(pictures), columns, squeeze=False,
                                figsize=(5.5 * columns, 4 * len(pictures)))
    for (title, lines), (times, widths, *rest) in zip(pictures.items(), grid):
        draw_lines(times, lines, 'time_us', True)
        times.set_yscale('log')
        times.set_ylabel('time, µs')
        times.set_title(title)
        times.legend(fontsize='small', frameon=False)
        draw_lines(widths, lines, 'busbw_gbs', False)
        widths.set_ylabel('bus bandwidth, GB/s')
        widths.set_ylim(bottom=0)
        widths.set_title(title)
        for axes in rest:
            draw_speed_up(axes, lines)
            axes.legend(fontsize='small', frameon=False)
    figure.suptitle('\n'.join(machines), fontsize='medium')
    figure.tight_layout()
    return figure


def main():
    if sys.argv[1:] == ['--check']:
        return
    outputs = [path for path in sys.argv[1:] if path.endswith(('.png', '.svg'))]
    inputs = [path for path in sys.argv[1:] if path not in outputs]
    if not inputs or not outputs:
        sys.exit(__doc__)
    pictures, machines = read(inputs)
    if not pictures:
        sys.exit(f'plot.py: nothing with a size in {", ".join(inputs)}')
    ranks = {ranks for lines in pictures.values() for _, ranks in lines}
    figure = draw(pictures, machines, len(ranks) > 1)
    for path in outputs:
        figure.savefig(path, dpi=130)
        print(f'wrote {os.path.abspath(path)}')


if __name__ == '__main__':
    main()
