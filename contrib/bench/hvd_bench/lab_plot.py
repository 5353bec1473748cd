#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws the tables that hvd-bench --lab has written:

    lab_plot.py training.csv|allreduce.csv OUT.png OUT.svg

Curves over the number of processes, where a backend has at least three of them on the same number of
servers; bars for each layout otherwise.
"""

import csv
import sys

import pictures

TEXT = ('backend', 'model')  # other columns are numbers
# The style of a line tells the number of servers.
LINES = ('-', '--', ':', '-.')


class Panel:
    """One diagram: a column of rows, and what it is called."""

    def __init__(self, rows, column, title, label, scale='linear'):
        self.rows, self.column, self.title, self.label, self.scale = rows, column, title, label, scale

    def value(self, row):
        return row[self.column]

    def ideal(self, row):
        """Returns what a training without any cost of communication reaches, or None."""
        return row[self.column] / row['efficiency'] if 'efficiency' in row else None


def read(path):
    try:
        with open(path, newline='') as file:
            rows = [{name: text if name in TEXT else float(text or 'nan') for name, text in row.items()}
                    for row in csv.DictReader(file)]
    except (OSError, TypeError, ValueError) as error:
        sys.exit(f'lab_plot.py: {path} is no table of hvd-bench --lab: {error}')
    if not rows or 'backend' not in rows[0]:
        sys.exit(f'lab_plot.py: {path} has no rows of hvd-bench --lab')
    return rows


def panels_of(rows):
    """Returns the title of a picture and its panels."""
    if 'step_ms' in rows[0]:
        return (f'Training of {rows[0]["model"]}, batch of {rows[0]["batch"]:g} for each process',
                [Panel(rows, 'samples_s', 'Throughput', 'samples per second'),
                 Panel(rows, 'speed_up', 'Speed-up over one process', 'speed-up'),
                 Panel(rows, 'efficiency', 'Efficiency', 'speed-up / processes')])
    least, most = (choose(row['bytes'] for row in rows) for choose in (min, max))
    small, large = ([row for row in rows if row['bytes'] == size] for size in (least, most))
    return ('Allreduce of float32',
            [Panel(small, 'time_us', f'Time of {pictures.size_text(least)}', '\u00b5s', 'log'),
             Panel(large, 'busbw_gbs', f'Bus bandwidth of {pictures.size_text(most)}', 'GB/s')])


def lines_of(rows):
    """Returns the rows of each line: a backend on a number of servers, by processes."""
    lines = {}
    for row in sorted(rows, key=lambda row: row['ranks']):
        lines.setdefault((row['backend'], row['servers']), []).append(row)
    return lines


def has_curves(rows):
    return max(map(len, lines_of(rows).values())) >= pictures.LEAST_POINTS


def draw_curves(axes, panel):
    ideal = dict(sorted((row['ranks'], panel.ideal(row)) for row in panel.rows))
    if None not in ideal.values():
        axes.plot(ideal.keys(), ideal.values(), color='#222222', linewidth=1, linestyle=':', label='ideal')
    several = len({row['servers'] for row in panel.rows}) > 1
    servers = sorted({row['servers'] for row in panel.rows})
    for (backend, count), rows in lines_of(panel.rows).items():
        label = pictures.label_of(backend)
        if several:
            label += f', {count:g} server{"s" if count > 1 else ""}'
        axes.plot([row['ranks'] for row in rows], [panel.value(row) for row in rows], marker='o',
                  color=pictures.colour_of(backend), linestyle=LINES[servers.index(count) % len(LINES)],
                  label=label)
    axes.set(xlabel='processes', xticks=sorted(ideal))


def draw_bars(axes, panel):
    layouts = sorted({(row['servers'], row['per_server']) for row in panel.rows})
    pictures.draw_bars(axes, layouts, {(row['backend'], (row['servers'], row['per_server'])): panel.value(row)
                                       for row in panel.rows})
    ideal = {(row['servers'], row['per_server']): panel.ideal(row) for row in panel.rows}
    for position, layout in enumerate(layouts):
        if ideal[layout] is not None:
            axes.plot([position - 0.45, position + 0.45], [ideal[layout]] * 2, color='#222222', linewidth=1,
                      linestyle=':', label='ideal')
    axes.set_xticks(range(len(layouts)), [f'{servers:g} \u00d7 {each:g}' for servers, each in layouts])
    axes.set_xlabel('servers \u00d7 processes on each')


def draw(rows):
    title, panels = panels_of(rows)
    figure, grid = pictures.plt.subplots(1, len(panels), figsize=(pictures.MOST_INCHES, 4.4))
    named = {}
    for axes, panel in zip(grid, panels):
        (draw_curves if has_curves(panel.rows) else draw_bars)(axes, panel)
        axes.set(title=panel.title, ylabel=panel.label, yscale=panel.scale)
        if panel.scale == 'linear':
            axes.set_ylim(bottom=0)
        pictures.set_grid(axes)
        named.update((label, handle) for handle, label in zip(*axes.get_legend_handles_labels()))
    figure.suptitle(title)
    columns = min(len(named), 4)
    rows_of_legend = -(-len(named) // columns)
    figure.legend(named.values(), named.keys(), loc='lower center', ncol=columns, frameon=False,
                  fontsize='small')
    figure.tight_layout(rect=(0, 0.02 + 0.045 * rows_of_legend, 1, 1))
    return figure


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    pictures.save(draw(read(sys.argv[1])), sys.argv[2:])


if __name__ == '__main__':
    main()
