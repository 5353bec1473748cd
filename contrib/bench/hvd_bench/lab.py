#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures trainings for the table of a lab course: for each backend, number of servers and processes
per server, the time of a step, throughput, speed-up and scaling efficiency. Also measures allreduce
alone.

    hvd-bench --lab --servers 1,2 --per-server 1,2,4 --out lab        in a Slurm allocation
    hvd-bench --lab --per-server 1,2                                  on this machine

Writes OUT/training.md, .csv, .png and .svg, and the same files for allreduce. Backends take turns;
each figure is the median of the jobs of all turns. Speed-up is the throughput divided by that of one
process of the same backend; efficiency is the speed-up divided by the number of processes. Every
process has a batch of the same size.

Backends: hvd (DistributedOptimizer), gloo, gloo-views and gloo-fsdp (torch's
DistributedDataParallel on Gloo, without and with gradient_as_bucket_view, and fully_shard), ddp,
ddp-views and fsdp (the same three over torch.distributed's backend hvd), horovod=PYTHON (the Horovod of
that Python), and alone: the same number of processes without communication, which is the ideal.

Jobs are started by srun --hvd in a Slurm allocation, else by hvdrun on this machine. --launch COMMAND
starts them in another way; {servers}, {per_server}, {ranks} and {layout} ("2,2") are replaced in
COMMAND.
"""

import argparse
import csv
import glob
import itertools
import json
import os
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE_PYTHON = os.path.join(HERE, '..', '..', 'python')
JOB_SECONDS = 600
COLUMNS = ('backend', 'servers', 'per_server', 'ranks', 'step_ms', 'samples_s', 'speed_up',
           'efficiency')
ALLREDUCE = ('backend', 'servers', 'per_server', 'ranks', 'bytes', 'time_us', 'algbw_gbs',
             'busbw_gbs', 'over_hvd')


EXAMPLES = os.path.join(os.path.dirname(os.path.realpath(__file__)), '..', '..', 'examples', 'pytorch')
# The names of the models in lab_train.py, which cannot be imported here: it needs torch.
BACKENDS = ('hvd', 'gloo', 'gloo-views', 'gloo-fsdp', 'ddp', 'ddp-views', 'fsdp', 'alone')
MODELS = ('mlp', 'conv', 'wide', 'resnet50')


class LabError(Exception):
    """Ends the lab with a text for the user."""


def whole(text):
    """Parses a whole number of 1 or more."""
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= 1000000:
        raise argparse.ArgumentTypeError(f'expected a whole number from 1, found {text!r}')
    return int(text)


def one_of_each(read):
    """Returns a parser of lists in which no word occurs twice."""
    def read_list(text):
        items = [read(word) for word in text.split(',')]
        if len(set(items)) < len(items):
            raise argparse.ArgumentTypeError(f'expected each word once, found {text!r}')
        return items
    return read_list


def program(text):
    if shutil.which(text) is None:
        raise argparse.ArgumentTypeError(f'expected a program, found {text!r}')
    return text


def backend(text):
    if text.startswith('horovod='):
        program(text.partition('=')[2])
    elif text not in BACKENDS:
        raise argparse.ArgumentTypeError(
            f'expected {", ".join(BACKENDS)} or horovod=PYTHON, found {text!r}')
    return text


def parse():
    parser = argparse.ArgumentParser(prog='hvd-bench --lab', description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--servers', metavar='N,...', type=one_of_each(whole), default=[1],
                        help='numbers of servers, default 1')
    parser.add_argument('--per-server', metavar='N,...', type=one_of_each(whole), default=[1, 2],
                        help='processes on each server, default 1,2')
    parser.add_argument('--backends', type=one_of_each(backend), default=['hvd', 'gloo'],
                        help='backends that train, see above; default hvd,gloo')
    parser.add_argument('--peers', default='gloo', help='peers of allreduce, as in --vs, default gloo')
    parser.add_argument('--model', default='mlp', choices=MODELS)
    parser.add_argument('--batch', type=whole, metavar='N', default=32,
                        help='samples of each process per step, default 32')
    parser.add_argument('--steps', metavar='N', type=whole, default=30, help='steps of a job, default 30')
    parser.add_argument('--turns', metavar='N', type=whole, default=3,
                        help='jobs for each line of the table, default 3')
    parser.add_argument('--sizes', default='1K,1M,16M', help='sizes of allreduce; "": no allreduce')
    parser.add_argument('--launch', help='command that starts a job, see above')
    parser.add_argument('--python', type=program, default='/usr/bin/python3', help='an interpreter with torch')
    parser.add_argument('--hvd-bench', default='hvd-bench', help=argparse.SUPPRESS)
    parser.add_argument('--out', default='lab', help='directory for results, default lab')
    options = parser.parse_args()
    check(parser, options)
    return options


def check(parser, options):
    """Checks the options, so that mistakes are found before the first job."""
    template = default_launch() if options.launch is None else options.launch
    try:
        words = shlex.split(template.format(servers=1, per_server=1, ranks=1, layout='1'))
    except (KeyError, ValueError, IndexError):
        words = []
    if not words:
        parser.error(f'argument --launch: expected a command with {{servers}}, {{per_server}}, '
                     f'{{ranks}} or {{layout}} in it, found {template!r}')
    if shutil.which(words[0]) is None:
        parser.error(f'argument --launch: there is no {words[0]} in PATH, which starts the '
                     f'jobs: {template}')
    if max(options.servers) > 1 and words[0] == 'hvdrun' and '{layout}' not in template:
        parser.error('argument --servers: hvdrun runs on one server only; start this in a Slurm '
                     'allocation (salloc -N2), or give --launch')
    nodes = os.environ.get('SLURM_JOB_NUM_NODES', '')
    if words[0] == 'srun' and nodes.isdigit() and max(options.servers) > int(nodes):
        parser.error(f'argument --servers: expected at most {nodes}, the nodes of the Slurm '
                     f'allocation, found {max(options.servers)}')
    if options.model == 'resnet50' and not os.path.isdir(EXAMPLES):
        parser.error('argument --model: resnet50 is in a checkout of hvd only; expected mlp, conv or wide')
    try:
        os.makedirs(options.out, exist_ok=True)
    except OSError as error:
        parser.error(f'argument --out: cannot make {options.out}: {error.strerror}')
    if not os.access(options.out, os.W_OK | os.X_OK):
        parser.error(f'argument --out: cannot write into {options.out}')
    if not options.sizes:
        return
    asked = subprocess.run(measuring(options) + ['--help'], stdout=subprocess.DEVNULL,
                           stderr=subprocess.PIPE, text=True, check=False)
    if asked.returncode:
        parser.error('argument --sizes or --peers: '
                     + asked.stderr.strip().removeprefix('hvd-bench: '))


def measuring(options):
    return [options.hvd_bench, 'allreduce', '--sizes', options.sizes, '--level', 'runtime',
            '--vs', options.peers]


class Progress:
    """A line on a terminal that is overwritten in place."""

    def __init__(self, total):
        self.total, self.done, self.began = total, 0, time.monotonic()

    def show(self, what):
        """Shows the job that begins."""
        passed = time.monotonic() - self.began
        left = passed / max(self.done, 1) * (self.total - self.done) / 60
        rest = f', about {left:.0f} min left' if self.done else ''
        self.write(f'{self.done} of {self.total} jobs done{rest}: {what}')
        self.done += 1

    def write(self, text):
        if sys.stderr.isatty():
            print(f'\033[K{text}', end='\r', file=sys.stderr, flush=True)


def default_launch():
    if 'SLURM_JOB_ID' in os.environ:
        return 'srun --hvd --nodes={servers} --ntasks={ranks} --ntasks-per-node={per_server}'
    return 'hvdrun -np {ranks}'


def launch(options, servers, per_server, command, **env):
    template = default_launch() if options.launch is None else options.launch
    words = shlex.split(template.format(servers=servers, per_server=per_server,
                                        ranks=servers * per_server,
                                        layout=layout(servers, per_server)))
    try:
        done = subprocess.run(words + command, env=dict(os.environ, OMP_NUM_THREADS='1', **env),
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=JOB_SECONDS, check=False)
    except subprocess.TimeoutExpired as error:
        raise LabError(f'a job has not ended after {JOB_SECONDS} s: '
                       f'{shlex.join(words + command)}') from error
    if done.returncode:
        raise LabError(f'a job failed with status {done.returncode}: '
                       f'{shlex.join(words + command)}\n{done.stdout}')


def python_of(options, name):
    """Returns the interpreter of a backend and its PYTHONPATH: empty for Horovod, so that hvd does not hide
    it."""
    if name.startswith('horovod='):
        return name.partition('=')[2], ''
    source = SOURCE_PYTHON if os.path.isdir(SOURCE_PYTHON) else ''
    return options.python, os.pathsep.join(filter(None, (source, os.environ.get('PYTHONPATH'))))


def train(options, name, servers, per_server):
    """Runs a job and returns the seconds of a step on its slowest rank. The job's directory is in
    options.out, which the ranks of all servers must see."""
    python, path = python_of(options, name)
    directory = tempfile.mkdtemp(prefix='job-', dir=options.out)
    try:
        launch(options, servers, per_server,
               [python, os.path.join(HERE, 'lab_train.py'), name.partition('=')[0], options.model,
                directory, layout(servers, per_server), '--batch', str(options.batch),
                '--steps', str(options.steps)], PYTHONPATH=path)
        results = []
        for file in glob.glob(os.path.join(directory, 'result.*.json')):
            with open(file) as text:
                results.append(json.load(text))
    finally:
        shutil.rmtree(directory)
    if len(results) != servers * per_server:
        raise LabError(f'a job had {len(results)} ranks, expected {servers * per_server}: does '
                       f'--launch start as many?')
    sums = {result['sum'] for result in results} - {None}
    if len(sums) > 1:
        raise LabError(f'{name}: the ranks have different models, with sums {sums}')
    return max(result['step_s'] for result in results)


def layout(servers, per_server):
    return ','.join([str(per_server)] * servers)


def layouts(options):
    return list(itertools.product(options.servers, options.per_server))


def training_jobs(options):
    """Returns the jobs. Jobs of one process are always among them, because speed-up refers to these."""
    return [(name, *each) for each in dict.fromkeys([(1, 1), *layouts(options)])
            for name in options.backends]


def allreduce_layouts(options):
    return [each for each in layouts(options) if each[0] * each[1] > 1 and options.sizes]


def training(options, progress):
    """Measures trainings and returns rows of COLUMNS."""
    jobs = training_jobs(options)
    times = {job: [] for job in jobs}
    for turn in range(options.turns):
        for job in jobs:
            progress.show(f'training by {job[0]} on {job[1]} x {job[2]} processes, '
                          f'turn {turn + 1} of {options.turns}')
            times[job].append(train(options, *job))
    rows = []
    for name, servers, per_server in jobs:
        step = statistics.median(times[name, servers, per_server])
        alone = statistics.median(times[name, 1, 1])
        ranks = servers * per_server
        rows.append(dict(zip(COLUMNS, (
            name.partition('=')[0], servers, per_server, ranks, step * 1e3,
            options.batch * ranks / step, ranks * alone / step, alone / step))))
    return rows


def allreduce(options, progress):
    rows = []
    for servers, per_server in allreduce_layouts(options):
        path = os.path.join(options.out, f'allreduce-{servers}x{per_server}.json')
        progress.show(f'allreduce on {servers} x {per_server} processes')
        launch(options, servers, per_server, measuring(options) + ['--json', path])
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
    """Returns pyplot. Without matplotlib it prints the reason and returns None."""
    try:
        import matplotlib
    except ImportError:
        print('no pictures: they need matplotlib (Debian: python3-matplotlib)', file=sys.stderr)
        return None
    matplotlib.use('Agg')
    import matplotlib.pyplot
    return matplotlib.pyplot


def short(size):
    """Writes 65536 as 64K, as in --sizes."""
    unit = 0
    while unit < 3 and size % 1024 == 0:
        size, unit = size // 1024, unit + 1
    return f'{size}{["", "K", "M", "G"][unit]}'


def draw(options, plt, name, title, *panels):
    """Draws panels (rows, column, label, scale) side by side, each with a line for each backend and
    number of servers."""
    figure, grid = plt.subplots(1, len(panels), figsize=(5 * len(panels), 4))
    for axes, (rows, column, label, scale) in zip(grid, panels):
        ranks = sorted({row['ranks'] for row in rows})
        if column == 'speed_up':
            axes.plot(ranks, ranks, color='#999999', linestyle=':', label='ideal')
        for backend_, servers in dict.fromkeys((row['backend'], row['servers']) for row in rows):
            line = sorted((row['ranks'], row[column]) for row in rows
                          if (row['backend'], row['servers']) == (backend_, servers))
            axes.plot(*zip(*line), marker='o',
                      label=f'{backend_}, {servers} server{"s" if servers > 1 else ""}')
        axes.set(xlabel='processes', xticks=ranks, ylabel=label, yscale=scale)
        if scale == 'linear':
            axes.set_ylim(bottom=0)
        axes.grid(True, color='#dddddd', linewidth=0.6)
        axes.legend(fontsize='small', frameon=False)
    figure.suptitle(title)
    figure.tight_layout()
    for kind in 'png', 'svg':
        figure.savefig(os.path.join(options.out, f'{name}.{kind}'), dpi=130)


def draw_training(options, plt, rows):
    draw(options, plt, 'training',
         f'training of {options.model}, batch of {options.batch} for each process',
         (rows, 'speed_up', 'speed-up', 'linear'), (rows, 'efficiency', 'efficiency', 'linear'))


def draw_allreduce(options, plt, rows):
    """Draws the time of the smallest size, which depends on latency, and the bandwidth of the largest."""
    least, most = (choose(row['bytes'] for row in rows) for choose in (min, max))
    draw(options, plt, 'allreduce', 'allreduce of float32',
         ([row for row in rows if row['bytes'] == least], 'time_us',
          f'time of {short(least)}, \u00b5s', 'log'),
         ([row for row in rows if row['bytes'] == most], 'busbw_gbs',
          f'bus bandwidth of {short(most)}, GB/s', 'linear'))


def make(options):
    progress = Progress(len(training_jobs(options)) * options.turns +
                        len(allreduce_layouts(options)))
    try:
        rows = training(options, progress)
        progress.write('')
        write(options, 'training', COLUMNS, rows)
        plt = pyplot()
        if plt:
            draw_training(options, plt, rows)
        rows = allreduce(options, progress)
    finally:
        progress.write('')
    if rows:
        write(options, 'allreduce', ALLREDUCE, rows)
        if plt:
            draw_allreduce(options, plt, rows)
    print(f'\nwrote tables{" and pictures" if plt else ""} into {os.path.abspath(options.out)}')


def main():
    options = parse()
    print(f'{os.cpu_count()} cores on this machine, load {os.getloadavg()[0]:.1f}', flush=True)
    try:
        make(options)
    except LabError as error:
        sys.exit(f'hvd-bench --lab: {error}')
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == '__main__':
    main()
