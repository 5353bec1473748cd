#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Predicted against measured allreduces of this machine, as Markdown tables.

    contrib/bench/simulate/calibrate.py [--build build] [--layouts 1 2 1,1] [--sizes 65536 ...]

First what is fitted, each number from a measurement of its own (see the functions named fit_*);
all else is predicted from these. Jobs take turns in some rounds, and the median of the rounds
counts; in each a time is what a tenth of the calls stay below, so that other work matters less.
Still, nothing else should run. "Nodes" are host names of their own on this machine, joined by
TCP. Where ranks are more than cores, the kernel puts them where it likes.
"""

import argparse
import math
import os
import re
import statistics
import subprocess
import tempfile
from typing import NamedTuple, Tuple

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.normpath(os.path.join(HERE, '../../..'))
ON_NODES = os.path.join(HERE, '../on_nodes.sh')
STEP = 0.02  # us of any step
TINY = 8  # bytes that take no time to move
MESSAGES = (16384, 32768, 131072)  # bytes that do, as one message, one, and three
SLOTS = 1 << 20  # bytes of shared memory that a rank uses again and again
WINDOW = 256000  # the same of the one rank of a node, for messages


class Job(NamedTuple):
    layout: str
    sizes: Tuple[int, ...]
    kind: str = 'allreduce'
    gigabytes: float = 0.2
    place: str = 'dealt'  # ranks on cores; 'one': all on one; 'free': where the kernel likes


# What is simulated goes through shared memory, as lists of gradients do: single tensors of two ranks
# are better read where they are.
TABLE = '[nodes=1 ranks=2]\nallreduce 0 ll\nallreduce 25 one_shot\n'


def output(*command):
    with tempfile.NamedTemporaryFile('w', suffix='.table') as table:
        table.write(TABLE)
        table.flush()
        return subprocess.run(command, check=True, capture_output=True, text=True, timeout=100,
                              env={**os.environ, 'HVD_TUNE_TABLE': table.name}).stdout


class Machine:
    def __init__(self, build):
        self.program = os.path.join(build, 'contrib/bench/simulate_measure')
        self.simulate = os.path.join(build, 'contrib/bench/hvd_bench/hvd-bench')
        self.hvdrun = os.path.join(build, 'pmix_boot/hvdrun/hvdrun')
        self.cores = sorted(os.sched_getaffinity(0))
        self.out, self.sum, self.cross = {}, {}, {}
        self.fitting = {}  # rates that are being tried
        self.net = {'message': 1, 'latency': 0, 'netcopy': 1000}

    # --- measuring ---

    def core(self, job, rank):
        """Where a rank is, as the model has it: nodes share no core, if there are enough."""
        ranks = [node for node, count in enumerate(job.layout.split(',')) for _ in range(int(count))]
        if job.place == 'one':
            return 0
        return (rank if len(set(ranks)) == 1 else ranks[rank]) % len(self.cores)

    def run(self, job):
        """Microseconds of each size."""
        size = sum(map(int, job.layout.split(',')))
        binding = []
        if job.place != 'free' and (job.place == 'one' or size > len(self.cores)):
            cases = ' '.join(f'{rank}) core={self.cores[self.core(job, rank)]};;'
                             for rank in range(size))
            binding = ['sh', '-c', f'case $HOROVOD_RANK in {cases} esac; exec taskset -c $core "$@"', 'sh']
        work = [] if job.kind == 'yield' else [str(job.gigabytes), *map(str, job.sizes)]
        nodes = ['env', 'HVD_NET=tcp', ON_NODES, job.layout] if ',' in job.layout else []
        text = output(self.hvdrun, '-np', str(size), *nodes, *binding, self.program, job.kind, *work)
        return {int(size): float(us) for size, us in re.findall(r'^(\d+) ([\d.]+)$', text, re.M)}

    def measure(self, sizes, layouts, rounds):
        memory = tuple(sorted({*sizes, *(2 * size for size in sizes)}))
        jobs = {
            '1': Job('1', memory, gigabytes=1),
            '2': Job('2', (TINY, *memory), gigabytes=1),
            '2 shared': Job('2', tuple(size // 2 for size in memory), place='one'),
            '2 tiny shared': Job('2', (TINY,), gigabytes=0.05, place='one'),
            'yield': Job('2', (), kind='yield', place='one'),
            '1,1': Job('1,1', (*MESSAGES, *sizes)),
        }
        for layout in layouts:
            jobs.setdefault(layout, Job(layout, tuple(sizes)))
            if sum(map(int, layout.split(','))) > len(self.cores):
                jobs[f'{layout} free'] = Job(layout, tuple(sizes), place='free')
        runs = {name: [] for name in jobs}
        for _ in range(rounds):
            for name, job in jobs.items():
                runs[name].append(self.run(job))
        self.took = {name: {size: statistics.median(run[size] for run in many) for size in many[0]}
                     for name, many in runs.items()}

    # --- fitting ---

    def fit_turns(self):
        """us. sync: an allreduce of 8 bytes. switch: sched_yield of two ranks on one core; their
        allreduce of 8 bytes takes a turn: one looks in vain, then the other has the core."""
        self.sync = max(self.took['2'][TINY] - 3 * STEP, 0.01)
        self.switch = self.took['yield'][0]
        self.patience = max(self.took['2 tiny shared'][TINY] - 3 * STEP - self.switch, 0.01)

    def fit_memory(self):
        """GB/s, by the bytes that the ranks of a core touch. out: a rank alone copies. sum: two on
        one core pack theirs and add the other's, too. cross: two on two cores, all of whose
        bytes go from core to core."""
        fits = (self.out, '1'), (self.sum, '2 shared'), (self.cross, '2')
        for number, (rates, job) in enumerate(fits):
            for size in self.took[job]:
                if size != TINY:
                    self.fitting = {rates_of: 1e3 for rates_of in range(number + 1, 3)}
                    self.fitting[number] = 1e3
                    rates[self.touched(job, size)] = self.solve(self.fitting, number, (job, size))
        self.fitting = {}

    def fit_messages(self):
        """Of two nodes of one rank, us and GB/s. netcopy, message: what each byte of a message, and
        the message, costs the core at either end. latency: what else a single one takes."""
        one, longer, three = (('1,1', size) for size in MESSAGES)
        for _ in range(3):
            self.solve(self.net, 'netcopy', longer, beyond=one)
            self.solve(self.net, 'message', three, beyond=one)
            self.solve(self.net, 'latency', one)

    def solve(self, numbers, key, measured, beyond=None):
        """Sets one of our numbers so that the prediction of a measurement is right, or of what it
        takes beyond another."""
        low, high = 0.01, 1000.0
        is_rate = numbers is not self.net or key == 'netcopy'
        for _ in range(24):
            numbers[key] = (low * high) ** 0.5
            if (self.excess(measured) > (self.excess(beyond) if beyond else 0)) == is_rate:
                low = numbers[key]
            else:
                high = numbers[key]
        return numbers[key]

    def excess(self, measured):
        """us by which a prediction is above what was measured."""
        job, size = measured
        return self.predict(job, size)[0] - self.took[job][size]

    # --- predicting ---

    def touched(self, job, size):
        """Bytes of input, output and shared memory that the ranks of the fullest core touch."""
        ranks = [int(count) for count in job.split()[0].split(',')]
        cores = self.cores_of(job)
        is_packed = sum(ranks) > 1
        has_lanes = max(ranks) > 1 and (len(ranks) > 1 or (ranks[0] > 2 and size > 65536))
        slots = min(size, SLOTS if max(ranks) > 1 else WINDOW) * (is_packed + has_lanes)
        return -(-max(ranks) // cores) * (2 * size + slots)

    def cores_of(self, job):
        nodes = job.count(',') + 1
        return 1 if job.endswith('shared') else max(1, len(self.cores) // nodes)

    def rate(self, number, touched):
        """Between the nearest ones that are known."""
        rates = (self.out, self.sum, self.cross)[number]
        if number in self.fitting:
            return self.fitting[number]
        known = sorted(rates)
        above = min((at for at in known if at >= touched), default=known[-1])
        below = max((at for at in known if at <= touched), default=known[0])
        if above == below:
            return rates[above]
        share = math.log(touched / below) / math.log(above / below)
        return rates[below] ** (1 - share) * rates[above] ** share

    def predict(self, job, size):
        """Microseconds and algorithm."""
        ranks = [int(count) for count in job.split()[0].split(',')]
        out, add, cross = (self.rate(number, self.touched(job, size)) for number in range(3))
        text = (f'nodes={len(ranks)},gpus={ranks[0]},bytes={size},whole=1,calls=20,'
                f'cores={self.cores_of(job)},patience={self.patience}us,switch={self.switch}us,'
                f'memory=10000GB,pcie={add}GB,out={out}GB,sum={add}GB,cross={cross}GB,'
                f'sync={self.sync}us,step={STEP}us,link=100GB,latency={self.net["latency"]}us,'
                f'message={self.net["message"]}us,netcopy={self.net["netcopy"]}GB')
        found = re.search(r'bytes: ([\d.]+) us, (\w+)', output(self.simulate, '--simulate', text))
        return float(found.group(1)), found.group(2)


def print_fits(machine):
    print(f'sync={machine.sync:.2f}us switch={machine.switch:.2f}us '
          f'patience={machine.patience:.2f}us message={machine.net["message"]:.2f}us '
          f'latency={machine.net["latency"]:.2f}us netcopy={machine.net["netcopy"]:.2f}GB\n')
    print('| bytes touched | out, GB/s | sum (and pack) | cross |\n|---|---|---|---|')
    for touched in sorted({*machine.out, *machine.sum, *machine.cross}):
        rates = (f'{rates[touched]:.1f}' if touched in rates else ''
                 for rates in (machine.out, machine.sum, machine.cross))
        print(f'| {touched} | {" | ".join(rates)} |')


def print_predictions(machine, layouts, sizes):
    print('\n| layout | bytes | algorithm | measured, us | predicted | error | | placed by the kernel |\n'
          '|---|---|---|---|---|---|---|---|')
    for layout in layouts:
        for size in sizes:
            took = machine.took[layout][size]
            free = machine.took.get(f'{layout} free', {}).get(size)
            predicted, algorithm = machine.predict(layout, size)
            print(f'| {layout} | {size} | {algorithm} | {took:.1f} | {predicted:.1f} | '
                  f'{(predicted / took - 1) * 100:+.0f} % | '
                  f'{"fitted" if layout in ("1", "2") else ""} | {f"{free:.1f}" if free else ""} |', flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--build', default=os.path.join(ROOT, 'build'))
    parser.add_argument('--layouts', nargs='+', default=['1', '2', '3', '4', '1,1', '2,2'])
    parser.add_argument('--sizes', nargs='+', type=int, default=[65536, 262144, 1048576, 4194304])
    parser.add_argument('--rounds', type=int, default=3)
    arguments = parser.parse_args()
    machine = Machine(arguments.build)
    machine.measure(arguments.sizes, arguments.layouts, arguments.rounds)
    machine.fit_turns()
    machine.fit_memory()
    machine.fit_messages()
    print_fits(machine)
    print_predictions(machine, arguments.layouts, arguments.sizes)


if __name__ == '__main__':
    main()
