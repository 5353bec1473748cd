#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Predicted against measured allreduces of this machine, as a Markdown table.

    contrib/bench/simulate/calibrate.py [--build build] [--layouts 1 2 1,1] [--sizes 65536 ...]

What is fitted: the rate of writing an array, by allreduces of one rank; that of packing and adding, by
those of two ranks on one node; what a message costs, by allgathers between two nodes of one
rank each. All else is predicted from these. Times are what a tenth of the measurements stay
below, so that other work matters less; still, nothing else should run. "Nodes" are host names
of their own on this machine, joined by TCP.
"""

import argparse
import os
import re
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.normpath(os.path.join(HERE, '../../..'))
SYNC = 0.2  # us until another core sees a signal


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=100).stdout


class Machine:
    def __init__(self, build):
        self.program = os.path.join(build, 'contrib/bench/simulate_measure')
        self.simulate = os.path.join(build, 'contrib/bench/hvd_bench/hvd-bench')
        self.hvdrun = os.path.join(build, 'pmix_boot/hvdrun/hvdrun')
        self.cores = len(os.sched_getaffinity(0))

    def measure(self, layout, kind, gigabytes, sizes):
        """Microseconds of each size."""
        job = os.path.join(ROOT, 'tests/collectives/job.sh')
        text = output(job, self.hvdrun, layout, self.program, kind, str(gigabytes), *map(str, sizes))
        return {int(size): float(us) for size, us in re.findall(r'^(\d+) ([\d.]+)$', text, re.M)}

    def fit(self, sizes):
        """GB/s by size: of writing, and of packing and adding (each takes every byte once)."""
        self.known = {'1': self.measure('1', 'allreduce', 1, sizes),
                      '2': self.measure('2', 'allreduce', 1, sizes)}
        self.out = {size: size / us / 1e3 for size, us in self.known['1'].items()}
        self.rate = {size: 2 * size / (us - self.known['1'][size] - SYNC) / 1e3
                     for size, us in self.known['2'].items()}

    def fit_messages(self):
        """Half of a small allgather is latency, and a quarter is spent at either end; what a large one
        takes more is staged in and out and handled at either end."""
        small, large = 8, 65536
        took = self.measure('1,1', 'allgather', 0.2, [small, large])
        staging = large * (1 / self.rate[large] + 1 / self.out[large]) / 1e3
        self.message = took[small] / 4
        self.netcopy = 2 * large / max(took[large] - took[small] - staging, 1e-3) / 1e3

    def predict(self, layout, size):
        ranks = [int(count) for count in layout.split(',')]
        crowded = max(1, sum(ranks) / self.cores)
        text = (f'nodes={len(ranks)},gpus={ranks[0]},bytes={size},whole=1,'
                f'cores={self.cores / len(ranks)},memory=10000GB,pcie={self.rate[size]}GB,'
                f'out={self.out[size]}GB,sum={self.rate[size]}GB,sync={SYNC * crowded}us,'
                f'step=20ns,link=100GB')
        if len(ranks) > 1:
            text += f',latency={2 * self.message}us,message={self.message}us,netcopy={self.netcopy}GB'
        return float(re.search(r'bytes: ([\d.]+) us', output(self.simulate, '--simulate', text)).group(1))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--build', default=os.path.join(ROOT, 'build'))
    parser.add_argument('--layouts', nargs='+', default=['1', '2', '3', '4', '1,1', '2,2'])
    parser.add_argument('--sizes', nargs='+', type=int, default=[65536, 262144, 1048576, 4194304])
    arguments = parser.parse_args()
    machine = Machine(arguments.build)
    machine.fit(sorted({65536, *arguments.sizes}))
    machine.fit_messages()
    print(f'message={machine.message:.2f}us netcopy={machine.netcopy:.2f}GB\n')
    print('| layout | bytes | measured, us | predicted | error | |\n|---|---|---|---|---|---|')
    for layout in arguments.layouts:
        took = machine.known.get(layout)
        if took is None:
            took = machine.measure(layout, 'allreduce', 0.2, arguments.sizes)
        for size in arguments.sizes:
            predicted = machine.predict(layout, size)
            print(f'| {layout} | {size} | {took[size]:.1f} | {predicted:.1f} | '
                  f'{(predicted / took[size] - 1) * 100:+.0f} % | '
                  f'{"fitted" if layout in machine.known else ""} |', flush=True)


if __name__ == '__main__':
    main()
