# SPDX-License-Identifier: Apache-2.0
"""One rank of a job that trains a model as far as hvd can tell; autotune.py starts the ranks.

autotune_rank.py DIRECTORY LIST [--backward MS] [--steps N]

The backward pass is time that passes, as with a GPU, while gradients become ready one after the
other, the more elements the later; the optimizer waits for all of them; it and the forward pass
take half as long again. Rank 0 writes DIRECTORY/steps.json: the milliseconds of each step, and
after how many steps the autotuner's log (HOROVOD_AUTOTUNE_LOG) was written last.
"""

import argparse
import json
import math
import os
import time

import gradient_lists
import horovod.torch as hvd
import torch


def schedule(gradients, backward_s):
    """(name, tensor, seconds since the backward pass began), in order. A layer's time grows with
    its size, but less than that."""
    weights = [math.sqrt(math.prod(shape)) for _, shape in reversed(gradients)]
    passed, tensors = 0, []
    for (name, shape), weight in zip(reversed(gradients), weights):
        passed += weight
        tensors.append((name, torch.full(shape, float(hvd.rank())),
                        backward_s * passed / sum(weights)))
    return tensors


def sleep_until(moment):
    """Returns at once when it is so near that the kernel would oversleep it."""
    left = moment - time.perf_counter()
    if left > 0.0002:
        time.sleep(left)


def train_step(tensors, backward_s):
    start = time.perf_counter()
    handles = []
    for name, tensor, ready in tensors:
        sleep_until(start + ready)
        handles.append(hvd.allreduce_async_(tensor, name=name))
    sleep_until(start + backward_s)
    for handle in handles:
        hvd.synchronize(handle)
    time.sleep(backward_s / 2)
    return time.perf_counter() - start


def log_bytes():
    log = os.environ.get('HOROVOD_AUTOTUNE_LOG')
    return os.path.getsize(log) if log and os.path.exists(log) else 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('directory')
    parser.add_argument('list', choices=sorted(gradient_lists.LISTS))
    parser.add_argument('--backward', type=float, default=60, metavar='MS')
    parser.add_argument('--steps', type=int, default=520)
    options = parser.parse_args()
    torch.set_num_threads(1)
    hvd.init()
    tensors = schedule(gradient_lists.LISTS[options.list](), options.backward / 1000)
    times, settled, seen = [], 0, 0
    for step in range(options.steps):
        times.append(train_step(tensors, options.backward / 1000) * 1000)
        if hvd.rank() == 0 and log_bytes() != seen:
            settled, seen = step + 1, log_bytes()
    if hvd.rank() == 0:
        with open(os.path.join(options.directory, 'steps.json'), 'w') as file:
            json.dump({'times': times, 'settled': settled}, file)
    hvd.shutdown()


if __name__ == '__main__':
    main()
