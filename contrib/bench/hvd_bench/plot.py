#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws the figures that hvd-bench --json has written:

    plot.py RESULTS.json OUT.png OUT.svg

For each collective, type and operation it plots the time and the bus bandwidth against the size,
with a line for each library and its quartiles as a band. Fewer than three sizes are drawn as bars.
plot.py --check only checks that matplotlib, which it needs, is installed (Debian: python3-matplotlib).
"""

import collections
import json
import sys

import pictures  # ends with an explanation if there is no matplotlib

from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator


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
    drawings = collections.defaultdict(lambda: collections.defaultdict(list))
    with open(path) as file:
        document = json.load(file)
    for row in document['rows']:
        if row['bytes'] > 0:
            drawings[title_of(row)][row['who']].append(row)
    for lines in drawings.values():
        for rows in lines.values():
            rows.sort(key=lambda row: row['bytes'])
    return drawings, machine_of(document)


def size_axis(axes):
    axes.set_xscale('log', base=2)
    axes.xaxis.set_major_locator(LogLocator(base=8, numticks=12))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(pictures.size_text))


def draw_curves(axes, lines, figure, band):
    for who, rows in lines.items():
        sizes = [row['bytes'] for row in rows]
        axes.plot(sizes, [row[figure] for row in rows], label=pictures.label_of(who), marker='.',
                  color=pictures.colour_of(who))
        if band:
            axes.fill_between(sizes, [row['q1_us'] for row in rows],
                              [row['q3_us'] for row in rows], alpha=0.15, linewidth=0,
                              color=pictures.colour_of(who))
    size_axis(axes)


def draw_bars(axes, lines, figure):
    sizes = sorted({row['bytes'] for rows in lines.values() for row in rows})
    pictures.draw_bars(axes, sizes, {(who, row['bytes']): row[figure]
                                     for who, rows in lines.items() for row in rows})
    axes.set_xticks(range(len(sizes)), map(pictures.size_text, sizes))


def draw_panel(axes, lines, figure, band=False):
    if max(map(len, lines.values())) >= pictures.LEAST_POINTS:
        draw_curves(axes, lines, figure, band)
    else:
        draw_bars(axes, lines, figure)
    axes.set_xlabel('bytes')
    pictures.set_grid(axes)


def draw(drawings, machine):
    figure, grid = pictures.plt.subplots(len(drawings), 2, squeeze=False,
                                         figsize=(pictures.MOST_INCHES, 4 * len(drawings)))
    for (title, lines), (times, widths) in zip(drawings.items(), grid):
        draw_panel(times, lines, 'time_us', band=True)
        times.set(yscale='log', ylabel='time, µs', title=f'{title}: time')
        times.legend(fontsize='small', frameon=False)
        draw_panel(widths, lines, 'busbw_gbs')
        widths.set(ylabel='bus bandwidth, GB/s', title=f'{title}: bus bandwidth')
        widths.set_ylim(bottom=0)
    figure.suptitle(machine, fontsize='medium')
    figure.tight_layout()
    return figure


def main():
    if sys.argv[1:] == ['--check']:
        return
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    drawings, machine = read(sys.argv[1])
    if not drawings:
        sys.exit(f'plot.py: nothing with a size in {sys.argv[1]}')
    pictures.save(draw(drawings, machine), sys.argv[2:])


if __name__ == '__main__':
    main()
