#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Predicted against measured allreduces of this machine, as a Markdown table.

    contrib/bench/simulate/calibrate.py [--build build] [--layouts 1 2 1,1] [--sizes 65536 ...]

Rates of copies and sums come from probes that know nothing of hvd, what a message costs from
allgathers between two nodes of one rank each; allreduces are predicted from these. Both are the
times that a tenth of the measurements stay below, so that other work matters less; still,
nothing else should run. "Nodes" are host names of their own on this machine, joined by TCP.
"""

import argparse
import os
import re
import statistics
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.normpath(os.path.join(HERE, '../../..'))


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=100).stdout


def options(text):
    """'pcie=3GB,sync=9ns' as {'pcie': 3.0, 'sync': 9.0}."""
    return {name: float(value) for name, value in re.findall(r'(\w+)=([\d.]+)', text)}


class Machine:
    def __init__(self, build):
        self.program = os.path.join(build, 'contrib/bench/simulate_measure')
        self.simulate = os.path.join(build, 'contrib/bench/simulate/hvd-simulate')
        self.hvdrun = os.path.join(build, 'pmix_boot/hvdrun/hvdrun')
        self.cores = len(os.sched_getaffinity(0))
        self.message = self.netcopy = None

    def measure(self, layout, kind, gigabytes, sizes):
        """Microseconds of each size."""
        job = os.path.join(ROOT, 'tests/collectives/job.sh')
        text = output(job, self.hvdrun, layout, self.program, kind, str(gigabytes), *map(str, sizes))
        return {int(size): float(us) for size, us in re.findall(r'^(\d+) ([\d.]+)$', text, re.M)}

    def probe(self, ranks, size):
        """Rates as hvd-simulate wants them; the median of some probes."""
        processes = min(ranks, self.cores)
        probes = [options(output(self.program, 'probe', str(processes), str(size))) for _ in range(2)]
        return {name: statistics.median(each[name] for each in probes) for name in probes[0]}

    def probe_messages(self):
        """One message costs half of a small allgather as latency and a quarter at either end;
        what a large one takes more is staged in and out and handled at either end."""
        small, large = 8, 65536
        took = self.measure('1,1', 'allgather', 0.2, [small, large])
        rates = self.probe(2, large)
        staging = large * (1 / rates['pcie'] + 1 / rates['out']) / 1e3
        self.message = took[small] / 4
        self.netcopy = 2 * large / max(took[large] - took[small] - staging, 1e-3) / 1e3

    def predict(self, layout, size, rates):
        ranks = [int(count) for count in layout.split(',')]
        crowded = max(1, sum(ranks) / self.cores)
        text = (f'nodes={len(ranks)},gpus={ranks[0]},bytes={size},whole=1,cores={self.cores / len(ranks)},'
                f'memory=10000GB,pcie={rates["pcie"]}GB,out={rates["out"]}GB,sum={rates["sum"]}GB,'
                f'sync={rates["sync"] * crowded}ns,step=20ns,link=100GB')
        if len(ranks) > 1:
            text += f',latency={2 * self.message}us,message={self.message}us,netcopy={self.netcopy}GB'
        return float(re.search(r'bytes: ([\d.]+) us', output(self.simulate, text)).group(1))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--build', default=os.path.join(ROOT, 'build'))
    parser.add_argument('--layouts', nargs='+', default=['1', '2', '3', '4', '1,1', '2,2'])
    parser.add_argument('--sizes', nargs='+', type=int, default=[65536, 262144, 1048576, 4194304])
    arguments = parser.parse_args()
    machine = Machine(arguments.build)
    if any(',' in layout for layout in arguments.layouts):
        machine.probe_messages()
        print(f'message={machine.message:.2f}us netcopy={machine.netcopy:.2f}GB\n')
    print('| layout | bytes | measured, us | predicted | error |\n|---|---|---|---|---|')
    for layout in arguments.layouts:
        is_wide = ',' in layout
        took = machine.measure(layout, 'allreduce', 0.2 if is_wide else 1, arguments.sizes)
        for size in arguments.sizes:
            rates = machine.probe(sum(map(int, layout.split(','))), size)
            predicted = machine.predict(layout, size, rates)
            print(f'| {layout} | {size} | {took[size]:.1f} | {predicted:.1f} | '
                  f'{(predicted / took[size] - 1) * 100:+.0f} % |', flush=True)


if __name__ == '__main__':
    main()
