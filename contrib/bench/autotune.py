#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the autotuner gains, as a Markdown table: jobs that train as autotune_rank.py does.

For each layout and gradient list one job is tuned from start to end. Then jobs with the defaults
and jobs with what was found take turns, so that both see the same machine; each counts its
median step after a warm-up. Nothing else should run.

    contrib/bench/autotune.py [--build DIR] [--turns N] [--layouts 2 2,2] [--lists ...]

Needs hvd, built in DIR (default: build), and Debian's python3-torch.
"""

import argparse
import csv
import json
import os
import statistics
import sys
import tempfile

import gradient_lists
import runtime

WARM_UP_STEPS = 30
TUNING_SECONDS = 1800


def train(options, layout, gradient_list, steps, **variables):
    """What autotune_rank.py writes about a job with these environment variables."""
    hvd = runtime.hvd_runtime(options.build)
    with tempfile.TemporaryDirectory(prefix='hvd-bench-') as directory:
        command = [*hvd.launcher(layout), hvd.python,
                   os.path.join(runtime.HERE, 'autotune_rank.py'), directory, gradient_list,
                   '--steps', str(steps), '--backward', str(options.backward)]
        said = runtime.run_processes([command], {**hvd.env, **variables})
        try:
            with open(os.path.join(directory, 'steps.json')) as file:
                return json.load(file)
        except OSError as error:
            sys.exit(f'{error}\n{said}')


def tune(options, layout, gradient_list):
    """(steps until settled, median step meanwhile, the setting as variables)."""
    with tempfile.TemporaryDirectory(prefix='hvd-bench-') as directory:
        log = os.path.join(directory, 'log.csv')
        job = train(options, layout, gradient_list, 520, HOROVOD_AUTOTUNE='1',
                    HOROVOD_AUTOTUNE_LOG=log)
        with open(log) as file:
            best = list(csv.DictReader(file))[-1]
    threshold = int(float(best['tensor_fusion_threshold']) * 2 ** 20)
    return (job['settled'], statistics.median(job['times'][:job['settled']]),
            {'HOROVOD_FUSION_THRESHOLD': str(threshold),
             'HOROVOD_CYCLE_TIME': best['cycle_time_ms']})


def median_step(options, layout, gradient_list, variables):
    job = train(options, layout, gradient_list, options.steps + WARM_UP_STEPS, **variables)
    return statistics.median(job['times'][WARM_UP_STEPS:])


def measure(options, layout, gradient_list):
    """A row of the table."""
    settled, meanwhile, setting = tune(options, layout, gradient_list)
    pairs = []
    for turn in range(options.turns):
        runtime.note(f'{layout} {gradient_list}: turn {turn + 1} of {options.turns}')
        pairs.append([median_step(options, layout, gradient_list, variables)
                      for variables in ({}, setting)])
    defaults, tuned = map(statistics.median, zip(*pairs))
    ratios = sorted(with_defaults / with_setting for with_defaults, with_setting in pairs)
    return (gradient_list, layout, str(settled),
            f'{int(setting["HOROVOD_FUSION_THRESHOLD"]) / 2 ** 20:g} MiB, '
            f'{setting["HOROVOD_CYCLE_TIME"]} ms', f'{meanwhile:.1f}', f'{defaults:.1f}',
            f'{tuned:.1f}', f'{statistics.median(ratios):.3f}',
            f'{ratios[0]:.2f} to {ratios[-1]:.2f}')


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--build', default=os.path.join(runtime.ROOT, 'build'))
    parser.add_argument('--turns', type=int, default=5)
    parser.add_argument('--steps', type=int, default=100, help='measured steps of a job')
    parser.add_argument('--backward', type=float, default=60, metavar='MS')
    parser.add_argument('--layouts', nargs='*', default=['2', '2,2'],
                        help='ranks on each node')
    parser.add_argument('--lists', nargs='*', choices=sorted(gradient_lists.LISTS),
                        default=['resnet50', 'vgg16_narrow', 'bert_narrow'])
    return parser.parse_args()


def main():
    options = parse()
    runtime.JOB_SECONDS = TUNING_SECONDS  # its own jobs are shorter
    print(f'{os.cpu_count()} cores, load before {os.getloadavg()[0]:.1f}; steps in ms, medians '
          f'of {options.turns} turns; backward pass {options.backward:g} ms')
    rows = [measure(options, layout, gradient_list)
            for layout in options.layouts for gradient_list in options.lists]
    runtime.print_table(('gradients', 'layout', 'steps until settled', 'setting found',
                         'step meanwhile', 'defaults', 'tuned', 'defaults / tuned',
                         'in turns'), rows)
    print(f'\nload after {os.getloadavg()[0]:.1f}')


if __name__ == '__main__':
    main()
