# SPDX-License-Identifier: Apache-2.0
"""Names, colours and sizes that the pictures of plot.py and lab_plot.py share."""

import os
import sys

try:
    import matplotlib
except ImportError:
    sys.exit(f'{os.path.basename(sys.argv[0])}: needs matplotlib; Debian: apt-get install '
             'python3-matplotlib; in a virtual environment: pip install matplotlib')
matplotlib.use('Agg')
import matplotlib.pyplot as plt  # noqa: E402

MOST_INCHES, DOTS_PER_INCH = 11, 125  # at most 1,375 pixels wide
LEAST_POINTS = 3  # of a curve; fewer are drawn as bars
MOST_NUMBERED_BARS = 6

# Name and colour of whoever was measured: hvd is blue, what it is compared with has other colours.
SERIES = {
    'team': ('hvd, team', '#0b5fa5'), 'runtime': ('hvd, runtime', '#4ea3de'),
    'builtin': ('hvd, built-in table', '#9ccbee'),
    'limit': ('limit (hand-written)', '#777777'), 'ucx-limit': ('limit (UCX)', '#777777'),
    'mpi': ('MPI', '#c8501e'), 'gloo': ('Gloo', '#8a4fae'),
    'hvd': ('hvd', '#0b5fa5'), 'ddp': ('DDP over hvd', '#4ea3de'),
    'ddp-views': ('DDP over hvd, bucket views', '#9ccbee'), 'fsdp': ('FSDP over hvd', '#1c8c8c'),
    'gloo-views': ('Gloo, bucket views', '#b892d1'), 'gloo-fsdp': ('FSDP over Gloo', '#d65f9c'),
    'horovod': ('Horovod', '#3c8c3c'), 'alone': ('no communication', '#777777')}


def label_of(who):
    return SERIES.get(who, (who, None))[0]


def colour_of(who):
    return SERIES.get(who, (who, '#222222'))[1]


def size_text(size, _=None):
    """Writes 65536 as 64K, as in --sizes."""
    for unit, shift in (('G', 30), ('M', 20), ('K', 10)):
        if size >= 1 << shift:
            return f'{size / (1 << shift):g}{unit}'
    return f'{size:g}'


def set_grid(axes):
    axes.grid(True, color='#dddddd', linewidth=0.6)
    axes.set_axisbelow(True)


def draw_bars(axes, groups, bars):
    """Draws bars = {(who, group): value}, by group; those of a few are numbered."""
    whos = list(dict.fromkeys(who for who, _ in bars))
    width = 0.8 / len(whos)
    for number, who in enumerate(whos):
        values = {groups.index(group): value for (each, group), value in bars.items() if each == who}
        shift = (number - (len(whos) - 1) / 2) * width
        drawn = axes.bar([position + shift for position in values], list(values.values()), width,
                         color=colour_of(who), label=label_of(who))
        if len(bars) <= MOST_NUMBERED_BARS:
            axes.bar_label(drawn, [f'{value:.3g}' if value < 1000 else f'{value:.0f}' for value in values.values()], fontsize='x-small')
    axes.set_xlim(-0.6, len(groups) - 0.4)
    axes.margins(y=0.12)


def save(figure, paths):
    for path in paths:
        figure.savefig(path, dpi=DOTS_PER_INCH)
        print(f'wrote {os.path.abspath(path)}')
