# SPDX-License-Identifier: Apache-2.0
"""One rank that allreduces a model's gradients over and over, of hvd or of Horovod: the package
`horovod` that this Python finds. runtime.py starts the ranks and reads what they write.

agreement.py DIRECTORY LIST [--sizes one|real] [--steps N] [--alone RANKS]

With `--sizes one` each tensor has one element, under its real name, so that agreeing on the
tensors is nearly all that a step costs. A step submits all of LIST in the order of the backward
pass, then waits for each. DIRECTORY gets a file NUMBER.json with microseconds:

  first    a step with names that nobody knows yet; connections are open
  step     median of the later steps
  submit   median time of a step until its last tensor is submitted: Python and the library's queue
  one      median step of one tensor with as many elements: one agreement and all the data
  cpu      processor time of this process in a step, all threads, on average

With `--alone` RANKS processes, which are jobs of one rank each, do the same at the same time: the
same calls on an equally busy machine, and nobody to agree with.
"""

import argparse
import json
import math
import os
import statistics
import time

import gradient_lists
import horovod.torch as hvd
import torch

WARM_UP_STEPS = 20
KNOWN_NAMES = 900  # the cache of both runtimes knows 1024; new names are to evict none
LONGEST_WAIT_S = 60


def make_tensors(gradients, real_sizes):
    """(name, tensor) in the order of the backward pass; this rank's number everywhere."""
    return [(name, torch.full(shape if real_sizes else (1,), float(hvd.rank())))
            for name, shape in reversed(gradients)]


def run_step(tensors):
    """Seconds until all tensors were submitted, and until all were averaged."""
    start = time.perf_counter()
    handles = [hvd.allreduce_async_(tensor, name=name) for name, tensor in tensors]
    submitted = time.perf_counter()
    for handle in handles:
        hvd.synchronize(handle)
    return submitted - start, time.perf_counter() - start


def run_steps(tensors, count):
    """Medians of the steps, and processor seconds a step."""
    for _ in range(WARM_UP_STEPS):
        run_step(tensors)
    processor = time.process_time()
    times = [run_step(tensors) for _ in range(count)]
    processor = (time.process_time() - processor) / count
    submit, step = (statistics.median(column) for column in zip(*times))
    return submit, step, processor


def check(tensors):
    expected = (hvd.size() - 1) / 2
    for name, tensor in tensors:
        if not torch.all(tensor == expected):
            raise SystemExit(f'rank {hvd.rank()}: {name} should be {expected}, is {tensor}')


def open_connections():
    for index in range(WARM_UP_STEPS):
        hvd.allreduce(torch.ones(1), name=f'warm-up.{index}')


def meet(directory, ranks):
    """Returns when so many processes have come here; they are in different jobs."""
    open(os.path.join(directory, f'ready.{os.getpid()}'), 'w').close()
    give_up = time.monotonic() + LONGEST_WAIT_S
    while sum(name.startswith('ready.') for name in os.listdir(directory)) < ranks:
        if time.monotonic() > give_up:
            raise SystemExit(f'not all of the {ranks} processes came within {LONGEST_WAIT_S} s')
        time.sleep(0.002)


def run_first_steps(tensors):
    """Median of up to three steps, each with names of its own; the last leaves the real ones."""
    times = []
    for prefix in ['second.', 'first.', ''][-max(1, min(3, KNOWN_NAMES // len(tensors))):]:
        hvd.barrier()
        times.append(run_step([(prefix + name, tensor) for name, tensor in tensors])[1])
    return statistics.median(times)


def measure(tensors, steps):
    open_connections()
    first = run_first_steps(tensors)
    check(tensors)
    submit, step, processor = run_steps(tensors, steps)
    whole = torch.ones(sum(math.prod(tensor.shape) for _, tensor in tensors))
    one = run_steps([('one', whole)], steps)[1]
    return dict(first=first, step=step, submit=submit, one=one, cpu=processor)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('directory')
    parser.add_argument('list', choices=sorted(gradient_lists.LISTS))
    parser.add_argument('--sizes', choices=['one', 'real'], default='one')
    parser.add_argument('--steps', type=int, default=200)
    parser.add_argument('--alone', type=int, default=0, metavar='RANKS')
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    hvd.init()
    tensors = make_tensors(gradient_lists.LISTS[arguments.list](), arguments.sizes == 'real')
    if arguments.alone:
        meet(arguments.directory, arguments.alone)
    result = {name: seconds * 1e6 for name, seconds in measure(tensors, arguments.steps).items()}
    number = os.getpid() if arguments.alone else hvd.rank()
    with open(os.path.join(arguments.directory, f'{number}.json'), 'w') as file:
        json.dump(dict(result, size=hvd.size(), tensors=len(tensors)), file)
    hvd.shutdown()


if __name__ == '__main__':
    main()
