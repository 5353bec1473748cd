#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The step of a training by hvd and by its peers, on this machine, as a Markdown table.

    contrib/bench/torch_training/bench.py --build build --layout 2 --models mlp,resnet50
    sudo contrib/bench/torch_training/bench.py --build build --layout 1,1      # two nodes

Backends: hvd (DistributedOptimizer), ddp and ddp-views (torch's DistributedDataParallel
on Gloo, without and with gradient_as_bucket_view; on NCCL with --device cuda), fsdp (its
fully_shard), the three with -hvd (the same over torch.distributed's backend hvd; they and
fsdp only where named), horovod (needs --horovod $(horovod_env.sh)), alone: as many
processes, that train at the same time without a word to each other, which is the ideal,
and in-step: they exchange nothing, but all wait for the slowest before every update. What
is between these two, no communication can save.
"hvd+NAME=VALUE" is a backend, too: with that environment variable.
All jobs of a model are there from the start and take a few steps in turn, so that the ratios hold
on a busy machine, too; the others sleep meanwhile (Horovod, which does not, is stopped). Then all
start anew: two jobs that do the same may differ by 5 % as long as they live.

step: ms by the slowest rank, median over all turns; low and high are the quartiles. not hidden:
the step less that alone. of ideal: the step alone / the step. vs hvd: the step / hvd's. cpu: ms of
all ranks. Layouts: "2" is two ranks on this node; "1,1" plays two nodes with a cable
(two_nodes.sh). Ranks are bound as hvdrun does it, the peers' too; --bind none: not at all.
With --device cuda, for one node, ranks share the GPUs where there are fewer.
"""

import argparse
import csv
import json
import os
import signal
import socket
import statistics
import subprocess
import sys
import tempfile

from models import MODELS

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, '..', '..', '..')
START_SECONDS = 120
COLUMNS = ('layout', 'model', 'backend', 'step_ms', 'low_ms', 'high_ms', 'not_hidden_ms',
           'of_ideal', 'vs_hvd', 'cpu_ms')


def note(text):
    print(text, file=sys.stderr, flush=True)


def kind_of(backend):
    """Without the environment variables that it is given."""
    return backend.split('+')[0]


def environment(options, backend):
    """Ours without settings that would change one side only."""
    foreign = ('HOROVOD_', 'HVD_', 'PYTHONPATH', 'PMIX_', 'UCX_')
    env = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
    env['OMP_NUM_THREADS'] = '1'
    kind, *settings = backend.split('+')
    if 'hvd' in kind or kind == 'in-step':
        env['HVD_LIBRARY'] = os.path.abspath(
            os.path.join(options.build, 'collectives', 'libhvd.so'))
        env['HVD_GPU_MODULE'] = os.path.abspath(
            os.path.join(options.build, 'collectives', 'gpu', 'module', 'hvd_gpu.so'))
        env['PYTHONPATH'] = os.path.join(ROOT, 'contrib', 'python')
    if kind == 'horovod':
        env['HOROVOD_GLOO_TIMEOUT_SECONDS'] = '600'
    return dict(env, **dict(setting.split('=', 1) for setting in settings))


class Job:
    """All ranks of one backend's training of a model."""

    def __init__(self, backend):
        self.backend = backend
        self._stops = kind_of(backend) == 'horovod'
        self._launcher, self._pids = None, []

    def start(self, options, model, directory):
        path = os.path.join(directory, str(len(os.listdir(directory))))
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(path)
            listener.listen()
            listener.settimeout(START_SECONDS)
            self._launcher = subprocess.Popen(command(options, model, self.backend, path),
                                              env=environment(options, self.backend))
            ranks = sum(map(int, options.layout.split(',')))
            self._talks = [listener.accept()[0].makefile('rw')
                           for _ in range(ranks)]
        hellos = self._hear()
        self._pids = [hello['pid'] for hello in hellos]
        self._say(meet=next(hello['meet'] for hello in hellos if hello['rank'] == 0))

    def _say(self, **message):
        try:
            for talk in self._talks:
                print(json.dumps(message), file=talk, flush=True)
        except BrokenPipeError:
            sys.exit(f'{self.backend}: a rank has ended')

    def _hear(self):
        lines = [talk.readline() for talk in self._talks]
        if '' in lines:
            sys.exit(f'{self.backend}: a rank has ended')
        return [json.loads(line) for line in lines]

    def _signal(self, number):
        for pid in self._pids if self._stops else []:
            os.kill(pid, number)

    def steps(self, count):
        """Milliseconds of a step by the slowest rank, and of all processors."""
        self._signal(signal.SIGCONT)
        self._say(steps=count)
        heard = self._hear()
        self._signal(signal.SIGSTOP)
        return (max(each['wall'] for each in heard) * 1e3 / count,
                sum(each['cpu'] for each in heard) * 1e3 / count)

    def end(self):
        """Ends it; all ranks that train together must have the same model."""
        self._signal(signal.SIGCONT)
        self._say(steps=0)
        sums = {each['sum'] for each in self._hear()} - {None}
        if self._launcher.wait(START_SECONDS) != 0:
            sys.exit(f'{self.backend}: failed')
        if len(sums) > 1:
            sys.exit(f'{self.backend}: the ranks have different models, with sums {sums}')

    def kill(self):
        if self._launcher is not None and self._launcher.poll() is None:
            self._launcher.terminate()
            self._launcher.wait()


def command(options, model, backend, path):
    hvdrun = os.path.join(options.build, 'pmix_boot', 'hvdrun', 'hvdrun')
    nodes = options.layout.split(',')
    launcher = [hvdrun, '-np', nodes[0]]
    if len(nodes) == 2:
        launcher = [os.path.join(HERE, '..', 'two_nodes.sh'), hvdrun, options.layout]
    elif options.bind:
        launcher += ['--bind', options.bind]
    kind = kind_of(backend)
    python = options.horovod if kind == 'horovod' else options.python
    _, pixels, batch = MODELS[model]
    return [*launcher, python, os.path.join(HERE, 'worker.py'), path, kind, model,
            '--batch', str(options.batch or batch), '--pixels', str(options.pixels or pixels),
            '--layout', options.layout, '--device', options.device,
            *['--set-to-none'] * options.set_to_none, *['--set-to-zero'] * options.set_to_zero]


def measure(options, model):
    """{backend: [(wall, cpu) of each turn of each start]}"""
    seen = {backend: [] for backend in options.backends}
    for start in range(options.starts):
        backends = options.backends[::-1] if start % 2 else options.backends
        for backend, turns in measure_start(options, model, backends).items():
            seen[backend] += turns
    return seen


def measure_start(options, model, backends):
    with tempfile.TemporaryDirectory(prefix='hvd-bench-') as directory:
        jobs = []
        try:
            for backend in backends:
                jobs.append(Job(backend))
                note(f'starting {backend}')
                jobs[-1].start(options, model, directory)
            return take_turns(options, jobs)
        finally:
            for job in jobs:
                job.kill()


def take_turns(options, jobs):
    seen = {job.backend: [] for job in jobs}
    for job in jobs:
        job.steps(options.warm_up)
    for turn in range(options.turns):
        note(f'turn {turn + 1} of {options.turns}')
        for job in jobs if turn % 2 else jobs[::-1]:
            seen[job.backend].append(job.steps(options.steps))
    for job in jobs:
        job.end()
    return seen


def rows_of(options, model, seen):
    step = {backend: statistics.median(wall for wall, _ in turns)
            for backend, turns in seen.items()}
    for backend, turns in seen.items():
        low, _, high = statistics.quantiles((wall for wall, _ in turns), n=4)
        ideal, own = step.get('alone'), step.get('hvd')
        yield dict(zip(COLUMNS, (
            options.layout, model, backend, step[backend], low, high,
            step[backend] - ideal if ideal else None, ideal / step[backend] if ideal else None,
            step[backend] / own if own else None, statistics.median(cpu for _, cpu in turns))))


def cell(name, value):
    if value is None:
        return ''
    if isinstance(value, float):
        return f'{value:.3f}' if name in ('of_ideal', 'vs_hvd') else f'{value:.1f}'
    return value


def print_table(rows):
    print('|', ' | '.join(COLUMNS).replace('_', ' '), '|')
    print('|', ' | '.join(['---'] * 3 + ['---:'] * (len(COLUMNS) - 3)), '|')
    for row in rows:
        print('|', ' | '.join(cell(*item) for item in row.items()), '|')


def parse():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--build', required=True, help='the build directory of hvd')
    parser.add_argument('--horovod', metavar='PYTHON', help='which has Horovod')
    parser.add_argument('--python', default='/usr/bin/python3', help='of the others, with torch')
    parser.add_argument('--layout', default='2')
    parser.add_argument('--device', choices=('cpu', 'cuda'), default='cpu')
    parser.add_argument('--models', default='mlp,resnet50')
    parser.add_argument('--backends', help='default: all that are there')
    parser.add_argument('--starts', type=int, default=5, help='of all jobs')
    parser.add_argument('--turns', type=int, default=5, help='of a start')
    parser.add_argument('--steps', type=int, default=5, help='of a turn')
    parser.add_argument('--warm-up', type=int, default=3, help='steps before')
    parser.add_argument('--batch', type=int, help='pictures of a rank')
    parser.add_argument('--pixels', type=int, help='side of a picture')
    parser.add_argument('--bind', help="hvdrun's, on one node")
    gradients = parser.add_mutually_exclusive_group()
    gradients.add_argument('--set-to-none', action='store_true',
                           help='gradients are None before a step: the default of torch >= 2')
    gradients.add_argument('--set-to-zero', action='store_true',
                           help='gradients are zeros before a step: the default of torch < 2')
    parser.add_argument('--csv', metavar='FILE')
    parser.add_argument('--json', metavar='FILE')
    options = parser.parse_args()
    everything = ['alone', 'in-step', 'hvd', 'ddp', 'ddp-views', *['horovod'] * bool(options.horovod)]
    options.backends = options.backends.split(',') if options.backends else everything
    return options


def main():
    options = parse()
    print(f'{os.cpu_count()} cores, load before {os.getloadavg()[0]:.1f}; {options.starts} starts '
          f'of {options.turns} turns of {options.steps} steps\n', flush=True)
    rows = [row for model in options.models.split(',')
            for row in rows_of(options, model, measure(options, model))]
    print_table(rows)
    if options.csv:
        with open(options.csv, 'w', newline='') as file:
            writer = csv.DictWriter(file, COLUMNS)
            writer.writeheader()
            writer.writerows(rows)
    if options.json:
        with open(options.json, 'w') as file:
            json.dump(rows, file, indent=1)


if __name__ == '__main__':
    main()
