# SPDX-License-Identifier: Apache-2.0
"""The examples in contrib/examples/pytorch train on tiny data and print the expected results.
Prints TAP; starts its ranks itself. Arguments: the names of examples to try; default all. With
HVD_TEST_DEVICE=cuda they use this machine's GPUs if they can."""

import contextlib
import os
import re
import shutil
import sys
import tempfile

import launch
from report import run_check

EXAMPLES = os.path.join(launch.HERE, '..', '..', 'contrib', 'examples', 'pytorch')
TINY = ['--model', 'tiny', '--images', '256', '--image-size', '16', '--batch-size', '16']


def run_all(ranks, *runs):
    """Runs scripts with their options in one job. Returns for each script its output (None if the
    job failed), and the output with the exit status."""
    status, outputs = launch.run_scripts(ranks, *([os.path.join(EXAMPLES, script), *options]
                                                  for script, *options in runs))
    return [((output if status == 0 else None), f'exit status {status}\n{output}')
            for output in outputs]


def run(ranks, script, *options):
    return run_all(ranks, [script, *options])[0]


def numbers(pattern, output):
    return [float(number) for number in re.findall(pattern, output or '')]


def benchmark(report, _):
    both = [], ['--use-adasum', '--fp16-allreduce']
    runs = run_all(2, *(['synthetic_benchmark.py', '--model', 'tiny', '--image-size', '32',
                         '--batch-size', '4', '--num-warmup-batches', '2', '--num-iters', '3',
                         '--num-batches-per-iter', '2', '--no-cuda', *options]
                        for options in both))
    for options, (output, text) in zip(both, runs):
        per_rank, total = (re.findall(rf'^{words}: [\d.]+ \+-[\d.]+$', output or '', re.MULTILINE)
                           for words in ('Img/sec per CPU', r'Total img/sec on 2 CPU\(s\)'))
        report.line(len(per_rank) == len(total) == 1,
                    f'the benchmark prints images per second {" ".join(options)}'.rstrip(), text)


def imagenet(report, directory):
    options = [*TINY, '--epochs', '4', '--warmup-epochs', '2', '--base-lr', '0.02']
    checkpoint = ['--checkpoint-dir', directory]
    (output, text), _ = run_all(2, ['imagenet.py', *options],
                                ['imagenet.py', *options, *checkpoint])
    losses, rates = (numbers(pattern, output) for pattern in (r'loss ([\d.]+)', r'lr ([\d.]+)'))
    report.line(len(losses) == 4 and losses[-1] < 0.9 * losses[0], 'imagenet learns', text)
    report.line(len(rates) == 4 and 0.02 < rates[0] < rates[1] < 0.04 and rates[-1] < 0.01,
                'its learning rate warms up and falls', text)
    for epoch in (3, 4):
        with contextlib.suppress(FileNotFoundError):  # a failed job has not written it
            os.remove(os.path.join(directory, f'checkpoint-{epoch}.pt'))
    (output, text), other = run_all(
        2, ['imagenet.py', *options, *checkpoint],
        ['imagenet.py', *TINY, '--epochs', '2', '--sync-batch-norm', '--batches-per-allreduce', '2',
         '--fp16-allreduce'])
    rest = numbers(r'loss ([\d.]+)', output)
    report.line(len(rest) == 2 and all(abs(a / b - 1) < 1e-2 for a, b in zip(rest, losses[2:])),
                'imagenet continues from the last checkpoint as if it had not stopped',
                f'{losses} {rest}\n{text}')
    output, text = other
    losses = numbers(r'loss ([\d.]+)', output)
    report.line(len(losses) == 2 and losses[1] < losses[0],
                'imagenet trains with all its options', text)


def adasum(report, _):
    output, text = run(2, 'adasum.py', '--steps', '60')
    losses = dict(re.findall(r'^(\w+) +loss ([\d.]+)', output or '', re.MULTILINE))
    report.line(len(losses) == 2 and float(losses['Adasum']) < 0.3,
                'adasum trains with the learning rate of one rank', text)


def process_sets(report, _):
    output, text = run(4, 'process_sets.py', '--steps', '150')
    lines = re.findall(r'^(sin|abs): loss ([\d.]+) on ranks (.*); trunk is the same on all$',
                       output or '', re.MULTILINE)
    report.line(sorted((name, ranks) for name, _, ranks in lines) ==
                [('abs', '[1, 3]'), ('sin', '[0, 2]')] and all(float(each[1]) < 0.4
                                                               for each in lines),
                'two heads and a shared trunk learn on four ranks', text)


def rnn(report, _):
    promise = 'an LSTM learns the digits row by row on two ranks'
    reason = launch.missing(2, 'sklearn')
    if reason:
        report.skip(promise, reason)
        return
    output, text = run(2, 'rnn.py', '--epochs', '5')
    shares = numbers(r'accuracy ([\d.]+)', output)
    report.line(len(shares) == 5 and shares[-1] > 0.8, promise, text)


def chexnet(report, directory):
    log = os.path.join(directory, 'steps')
    options = ['--images', '320', '--image-size', '32', '--blocks', '1,1', '--growth', '8',
               '--batch-size', '8', '--epochs', '4', '--lr', '0.004']
    both = ([], '0.008'), (['--no-lr-scaling'], '0.004')
    runs = run_all(2, *(['chexnet.py', *options, *scaling, '--steps-log', log]
                        for scaling, _ in both))
    for (_, rate), (output, text) in zip(both, runs):
        areas = numbers(r'mean AUC ([\d.]+)', output)
        report.line(len(areas) == 4 and areas[-1] > 0.55 and f'learning rate {rate};' in text,
                    f'chexnet finds more than chance with learning rate {rate}', text)
    each = re.findall(r'^  \w+ +AUC [\d.]+$', output or '', re.MULTILINE)
    report.line(len(each) == 14, 'chexnet prints the AUC of fourteen findings', text)
    lines = open(log).read().splitlines() if os.path.exists(log) else []
    report.line(len(lines) == 4 * 15 and all(len(line.split()) == 3 for line in lines),
                'chexnet logs each step', '\n'.join(lines))


def train_mixed(*runs):
    """Trains with the options of each run. Yields (losses, the last printed scale, whether all
    ranks have the same parameters) and the output."""
    common = ['mixed_precision.py', *TINY, '--epochs', '3', '--lr', '0.02',
              *['--no-cuda'] * (launch.DEVICE == 'cpu')]
    for output, text in run_all(2, *([*common, *options] for options in runs)):
        losses = numbers(r'loss ([\d.]+|nan)', output)
        scales = re.findall(r'scale (.*)$', output or '', re.MULTILINE)
        yield (losses, scales[-1:], 'parameters are the same on all ranks' in (output or '')), text


def mixed_precision(report, _):
    # In float16 the dynamic scale skips steps until it is small enough.
    dtype, near = ('bfloat16', 0.1) if launch.DEVICE == 'cpu' else ('float16', 0.4)
    scaled = ['--dtype', dtype, '--loss-scale']
    ((right, _, same), text), *rest, infinite, everything = train_mixed(
        ['--dtype', 'float32', '--loss-scale', '1'], [*scaled, 'dynamic'], [*scaled, '1024'],
        [*scaled, 'inf'], ['--fp16-allreduce', '--sync-batch-norm'])
    report.line(len(right) == 3 and right[-1] < 0.9 * right[0] and same,
                'mixed_precision learns in single precision', text)
    seen = {}
    for scale, ((losses, scales, same), text) in zip(('dynamic', '1024'), rest):
        seen[scale] = losses
        report.line(len(losses) == 3 and same and losses[-1] < 0.9 * losses[0]
                    and all(abs(a / b - 1) < near for a, b in zip(losses, right)),
                    f'{dtype} learns as well with loss scale {scale}', f'{right}\n{text}')
    if dtype == 'bfloat16':
        report.line(seen['1024'] == seen['dynamic'] != [],
                    'a scale that is a power of two does not change the losses', str(seen))
    (losses, scales, same), text = infinite
    report.line(same and scales == ['inf, skipped steps: 24'],
                'all ranks skip steps whose gradients are not finite', text)
    (losses, scales, same), text = everything
    report.line(len(losses) == 3 and same and losses[-1] < 0.9 * losses[0],
                'mixed_precision learns with all its options', text)


CHECKS = {check.__name__: check for check in (benchmark, imagenet, adasum, process_sets, rnn,
                                              chexnet, mixed_precision)}


def main(report):
    for check in map(CHECKS.get, sys.argv[1:] or CHECKS):
        directory = tempfile.mkdtemp(prefix='hvd-test-')
        try:
            check(report, directory)
        finally:
            shutil.rmtree(directory)


if __name__ == '__main__':
    run_check(main, 4, 'torch, numpy')
