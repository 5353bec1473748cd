#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws the figures that hvd-bench --json has written:

    plot.py RESULTS.json OUT.png OUT.svg

For each collective, type and operation it plots the time and the bus bandwidth against the size,
with a line for each library and its quartiles as a band. plot.py --check only checks that
matplotlib, which it needs, is installed (Debian: python3-matplotlib).
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

LABELS = {'team': 'hvd, team', 'runtime': 'hvd, runtime', 'limit': 'limit (hand-written)',
          'ucx-limit': 'limit (UCX alone)', 'mpi': 'MPI', 'gloo': 'Gloo',
          'builtin': 'hvd, built-in table'}
COLOURS = {'team': '#0b5fa5', 'runtime': '#4ea3de', 'limit': '#777777', 'ucx-limit': '#777777',
           'mpi': '#c8501e', 'gloo': '#8a4fae', 'builtin': '#9ccbee'}


def size_text(size, _=None):
    for unit, shift in (('G', 30), ('M', 20), ('K', 10)):
        if size >= 1 << shift:
            return f'{size / (1 << shift):g}{unit}'
    return f'{size:g}'


def title_of(row):
    return ' '.join(filter(None, (row['collective'], row['dtype'], row['op'])))


def plural(count, thing):
    return f'{count} {thing}' + ('' if count == 1 else 's')


def machine_of(document):
    """Returns a line with ranks, layout and machine."""
    nodes, each = document['nodes'], document['layout'].split(',')
    layout = f'{nodes} x {each[0]}' if len(set(each)) == 1 else ','.join(each[:8])
    hosts = document['hosts']
    machine = [', '.join(hosts[:2]) + (', ...' if len(hosts) > 2 else ''),
               plural(document['cores'], 'core')]
    machine += [document['processor']] if document.get('processor') else []
    return (f"{plural(document['ranks'], 'rank')} on {plural(nodes, 'node')}, layout {layout}: "
            + ', '.join(machine))


def read(path):
    """Returns the rows as {title: {who: [rows by size]}}, and a line about the machine. Leaves out
    barriers, which have no size."""
    pictures = collections.defaultdict(lambda: collections.defaultdict(list))
    with open(path) as file:
        document = json.load(file)
    for row in document['rows']:
        if row['bytes'] > 0:
            pictures[title_of(row)][row['who']].append(row)
    for lines in pictures.values():
        for rows in lines.values():
            rows.sort(key=lambda row: row['bytes'])
    return pictures, machine_of(document)


def size_axis(axes):
    axes.set_xscale('log', base=2)
    axes.xaxis.set_major_locator(LogLocator(base=8, numticks=12))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(size_text))
    axes.set_xlabel('bytes')
    axes.grid(True, color='#dddddd', linewidth=0.6)


def draw_lines(axes, lines, figure, band):
    for who, rows in lines.items():
        sizes = [row['bytes'] for row in rows]
        axes.plot(sizes, [row[figure] for row in rows], label=LABELS.get(who, who), marker='.',
                  color=COLOURS.get(who))
        if band:
            axes.fill_between(sizes, [row['q1_us'] for row in rows],
                              [row['q3_us'] for row in rows], alpha=0.15, linewidth=0,
                              color=COLOURS.get(who))
    size_axis(axes)


def draw(pictures, machine):
    figure, grid = plt.subplots(len(pictures), 2, squeeze=False,
                                figsize=(11, 4 * len(pictures)))
    for (title, lines), (times, widths) in zip(pictures.items(), grid):
        draw_lines(times, lines, 'time_us', True)
        times.set_yscale('log')
        times.set_ylabel('time, µs')
        times.set_title(title)
        times.legend(fontsize='small', frameon=False)
        draw_lines(widths, lines, 'busbw_gbs', False)
        widths.set_ylabel('bus bandwidth, GB/s')
        widths.set_ylim(bottom=0)
        widths.set_title(title)
    figure.suptitle(machine, fontsize='medium')
    figure.tight_layout()
    return figure


def main():
    if sys.argv[1:] == ['--check']:
        return
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    pictures, machine = read(sys.argv[1])
    if not pictures:
        sys.exit(f'plot.py: nothing with a size in {sys.argv[1]}')
    figure = draw(pictures, machine)
    for path in sys.argv[2:]:
        figure.savefig(path, dpi=130)
        print(f'wrote {os.path.abspath(path)}')


if __name__ == '__main__':
    main()
