#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The table of the lab course: backend x servers x processes per server -> time of a step,
throughput, speed-up, efficiency of scaling. Also for allreduce alone.

    hvd-bench --lab --servers 1,2 --per-server 1,2,4 --out lab        in a Slurm allocation
    hvd-bench --lab --per-server 1,2                                  on this machine

Writes OUT/training.md, .csv, .png and .svg, and the same of allreduce. Each figure is the
median over the turns of what a job measured; backends take turns. Speed-up is the throughput over
that of one process of the same backend; efficiency is the speed-up over the number of
processes. Every process has a batch of the same size.

Jobs are started by srun --hvd in a Slurm allocation, else by hvdrun, which has this machine
only; --launch COMMAND for anything else: {servers}, {per_server}, {ranks} and {layout} ("2,2")
are replaced in it.
"""

import argparse
import csv
import itertools
import json
import os
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE_PYTHON = os.path.join(HERE, '..', '..', 'python')
JOB_SECONDS = 600
COLUMNS = ('backend', 'servers', 'per_server', 'ranks', 'step_ms', 'samples_s', 'speed_up',
           'efficiency')
ALLREDUCE = ('backend', 'servers', 'per_server', 'ranks', 'bytes', 'time_us', 'algbw_gbs',
             'busbw_gbs', 'over_hvd')


def numbers(text):
    return [int(word) for word in text.split(',')]


def parse():
    parser = argparse.ArgumentParser(prog='hvd-bench --lab', description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--servers', type=numbers, default=[1])
    parser.add_argument('--per-server', type=numbers, default=[1, 2])
    parser.add_argument('--backends', default='hvd,gloo', help='of the training: hvd, gloo')
    parser.add_argument('--peers', default='torch', help='of allreduce, as --vs')
    parser.add_argument('--model', default='mlp', help='mlp, conv')
    parser.add_argument('--batch', type=int, default=32, help='of each process')
    parser.add_argument('--steps', type=int, default=30)
    parser.add_argument('--turns', type=int, default=3)
    parser.add_argument('--sizes', default='1K,1M,16M', help='of allreduce')
    parser.add_argument('--launch', help='see above')
    parser.add_argument('--python', default='/usr/bin/python3', help='with torch')
    parser.add_argument('--hvd-bench', default='hvd-bench', help=argparse.SUPPRESS)
    parser.add_argument('--out', default='lab', help='directory, default lab')
    return parser.parse_args()


def default_launch():
    if 'SLURM_JOB_ID' in os.environ:
        return 'srun --hvd --nodes={servers} --ntasks={ranks} --ntasks-per-node={per_server}'
    return 'hvdrun -np {ranks}'


def launch(options, servers, per_server, command, **env):
    template = options.launch or default_launch()
    if servers > 1 and template.startswith('hvdrun') and '{layout}' not in template:
        sys.exit('lab.py: hvdrun has one server; use a Slurm allocation or --launch')
    words = shlex.split(template.format(servers=servers, per_server=per_server,
                                        ranks=servers * per_server,
                                        layout=','.join([str(per_server)] * servers)))
    env = dict(os.environ, OMP_NUM_THREADS='1', **env)
    if os.path.isdir(SOURCE_PYTHON):
        env['PYTHONPATH'] = os.pathsep.join(filter(None, (SOURCE_PYTHON,
                                                          env.get('PYTHONPATH'))))
    done = subprocess.run(words + command, env=env, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=JOB_SECONDS)
    if done.returncode:
        sys.exit(f'lab.py: failed: {shlex.join(words + command)}\n{done.stdout}')


def train(options, backend, servers, per_server):
    """Seconds of a step. Ranks on other servers meet in the directory: it is a shared one."""
    directory = tempfile.mkdtemp(prefix='job-', dir=options.out)
    try:
        launch(options, servers, per_server,
               [options.python, os.path.join(HERE, 'lab_train.py'), backend, options.model,
                directory, '--batch', str(options.batch), '--steps', str(options.steps)])
        with open(os.path.join(directory, 'result.json')) as file:
            result = json.load(file)
    finally:
        shutil.rmtree(directory)
    if result['ranks'] != servers * per_server:
        sys.exit(f'lab.py: a job of {result["ranks"]} ranks, not {servers * per_server}')
    return result['step_s']


def layouts(options):
    return list(itertools.product(options.servers, options.per_server))


def training(options):
    """Rows of COLUMNS. One process is measured in any case: it is what speed-up refers to."""
    backends = options.backends.split(',')
    wanted = layouts(options)
    jobs = [(backend, *layout) for layout in dict.fromkeys([(1, 1), *wanted])
            for backend in backends]
    times = {job: [] for job in jobs}
    for turn in range(options.turns):
        for job in jobs:
            print(f'turn {turn + 1} of {options.turns}: {job[0]}, {job[1]} x {job[2]}',
                  file=sys.stderr)
            times[job].append(train(options, *job))
    rows = []
    for backend, servers, per_server in jobs:
        step = statistics.median(times[backend, servers, per_server])
        alone = statistics.median(times[backend, 1, 1])
        ranks = servers * per_server
        rows.append(dict(zip(COLUMNS, (
            backend, servers, per_server, ranks, step * 1e3, options.batch * ranks / step,
            ranks * alone / step, alone / step))))
    return rows


def allreduce(options):
    rows = []
    for servers, per_server in layouts(options):
        if servers * per_server > 1:
            path = os.path.join(options.out, f'allreduce-{servers}x{per_server}.json')
            print(f'allreduce, {servers} x {per_server}', file=sys.stderr)
            launch(options, servers, per_server,
                   [options.hvd_bench, 'allreduce', '--sizes', options.sizes, '--level',
                    'runtime', '--vs', options.peers, '--json', path])
            with open(path) as file:
                rows += [dict(row, servers=servers, per_server=per_server,
                              backend='hvd' if row['who'] == 'runtime' else row['who'])
                         for row in json.load(file)['rows']]
    return [{name: row[name] for name in ALLREDUCE} for row in rows]


def cell(value):
    return f'{value:,.3g}' if isinstance(value, float) and value < 100 else (
        f'{value:,.0f}' if isinstance(value, float) else str(value))


def write(options, name, columns, rows):
    with open(os.path.join(options.out, f'{name}.csv'), 'w', newline='') as file:
        writer = csv.DictWriter(file, columns)
        writer.writeheader()
        writer.writerows(rows)
    lines = ['| ' + ' | '.join(columns) + ' |',
             '|' + '|'.join(['---'] + ['---:'] * (len(columns) - 1)) + '|']
    lines += ['| ' + ' | '.join(cell(row[column]) for column in columns) + ' |' for row in rows]
    table = '\n'.join(lines)
    with open(os.path.join(options.out, f'{name}.md'), 'w') as file:
        print(table, file=file)
    print(f'\n{name}\n\n{table}')


def pyplot():
    """None, and why, where there is no matplotlib."""
    try:
        import matplotlib
    except ImportError:
        print('no picture: needs matplotlib (Debian: python3-matplotlib)', file=sys.stderr)
        return None
    matplotlib.use('Agg')
    import matplotlib.pyplot
    return matplotlib.pyplot


def short(size):
    """65536 as 64K, as --sizes has it."""
    unit = 0
    while unit < 3 and size % 1024 == 0:
        size, unit = size // 1024, unit + 1
    return f'{size}{["", "K", "M", "G"][unit]}'


def curves(axes, rows, figure):
    """A line for each backend and number of servers."""
    for backend, servers in dict.fromkeys((row['backend'], row['servers']) for row in rows):
        line = sorted((row['ranks'], row[figure]) for row in rows
                      if (row['backend'], row['servers']) == (backend, servers))
        axes.plot(*zip(*line), marker='o',
                  label=f'{backend}, {servers} server{"s" if servers > 1 else ""}')
    axes.set_xlabel('processes')
    axes.set_xticks(sorted({row['ranks'] for row in rows}))
    axes.grid(True, color='#dddddd', linewidth=0.6)
    axes.legend(fontsize='small', frameon=False)


def save(options, name, title, figure):
    figure.suptitle(title)
    figure.tight_layout()
    for kind in 'png', 'svg':
        figure.savefig(os.path.join(options.out, f'{name}.{kind}'), dpi=130)


def draw_training(options, plt, rows):
    figure, (speed, share) = plt.subplots(1, 2, figsize=(10, 4))
    ranks = sorted({row['ranks'] for row in rows})
    speed.plot(ranks, ranks, color='#999999', linestyle=':', label='ideal')
    curves(speed, rows, 'speed_up')
    curves(share, rows, 'efficiency')
    speed.set_ylabel('speed-up')
    share.set_ylabel('efficiency')
    speed.set_ylim(bottom=0)
    share.set_ylim(bottom=0)
    save(options, 'training', f'training of {options.model}, batch of {options.batch} for each '
         'process', figure)


def draw_allreduce(options, plt, rows):
    """What latency decides and what bandwidth decides: the smallest and the largest size."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4))
    sizes = sorted({row['bytes'] for row in rows})
    curves(left, [row for row in rows if row['bytes'] == sizes[0]], 'time_us')
    curves(right, [row for row in rows if row['bytes'] == sizes[-1]], 'busbw_gbs')
    left.set_yscale('log')
    left.set_ylabel(f'time of {short(sizes[0])}, \u00b5s')
    right.set_ylabel(f'bus bandwidth of {short(sizes[-1])}, GB/s')
    right.set_ylim(bottom=0)
    save(options, 'allreduce', 'allreduce of float32', figure)


def main():
    options = parse()
    os.makedirs(options.out, exist_ok=True)
    print(f'{os.cpu_count()} cores on this machine, load {os.getloadavg()[0]:.1f}')
    rows = training(options)
    write(options, 'training', COLUMNS, rows)
    plt = pyplot()
    if plt:
        draw_training(options, plt, rows)
    rows = allreduce(options)
    write(options, 'allreduce', ALLREDUCE, rows)
    if plt and rows:
        draw_allreduce(options, plt, rows)


if __name__ == '__main__':
    main()
