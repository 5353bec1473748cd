# SPDX-License-Identifier: Apache-2.0
"""What hvd's calls cost the Python thread that makes them, or Horovod's: of the package `horovod`
that this Python finds.

    hvdrun -np 2 python3 calls.py [--steps N] [--count N] [--busy] [--gloo]
    $(horovod_env.sh) horovod_run.py 2 $(horovod_env.sh) calls.py ...

Rank 0 prints microseconds per tensor, the median of N steps and the step below which a tenth of
them are, which a loaded machine disturbs less; each as time on the clock and as processor time of
the calling thread:

  submit       allreduce_async_ of COUNT tensors of one element, by name, in place
  poll         of one that is done
  synchronize  with one that is done
  backward     with hooks that submit gradients, less the same without hooks; from two ranks on
  step's end   DistributedOptimizer.synchronize; from two ranks on, and with the wait for them
  together     submit all, then synchronize with each, with the wait for the others
  one by one   submit and synchronize, with the wait for the others, before the next tensor;
               "of it submit" is a part of that, on the clock only

With --gloo also what torch.distributed's calls cost on its gloo backend, in the same processes:
all_reduce(async_op=True), wait() of one that is done, together and one by one. calls.c tells what
the same costs in C, calls_tensorflow.py in TensorFlow; call_costs.py puts all in one table.

With --busy another Python thread computes all the time: who lets go of the interpreter lock waits
for his next turn.
"""

import argparse
import tempfile
import threading
import time

import horovod.torch as hvd
import torch
from torch import distributed

from stopwatch import WARM_UP_STEPS, Stopwatch, print_figures


def wait_until_done(handles):
    while not all(hvd.poll(handle) for handle in handles):
        time.sleep(0.0002)


def run_calls(stopwatch, tensors):
    hvd.barrier()
    stopwatch.restart()
    handles = [hvd.allreduce_async_(tensor, name=name) for name, tensor in tensors]
    stopwatch.note('submit')
    wait_until_done(handles)
    stopwatch.restart()
    for handle in handles:
        hvd.poll(handle)
    stopwatch.note('poll')
    for handle in handles:
        hvd.synchronize(handle)
    stopwatch.note('synchronize')


def run_together(stopwatch, tensors):
    hvd.barrier()
    stopwatch.restart()
    for handle in [hvd.allreduce_async_(tensor, name=name) for name, tensor in tensors]:
        hvd.synchronize(handle)
    stopwatch.note('together')


def run_one_by_one(stopwatch, tensors):
    hvd.barrier()
    submit = 0.0
    stopwatch.restart()
    for name, tensor in tensors:
        start = time.perf_counter()
        handle = hvd.allreduce_async_(tensor, name=name)
        submit += time.perf_counter() - start
        hvd.synchronize(handle)
    stopwatch.note('one by one')
    stopwatch.add('- of it submit', (submit, submit))


def run_gloo(stopwatch, tensors):
    """The same calls of torch.distributed."""
    distributed.barrier()
    stopwatch.restart()
    works = [distributed.all_reduce(tensor, async_op=True) for _, tensor in tensors]
    stopwatch.note('gloo submit')
    while not all(work.is_completed() for work in works):
        time.sleep(0.0002)
    stopwatch.restart()
    for work in works:
        work.wait()
    stopwatch.note('gloo wait')
    distributed.barrier()
    stopwatch.restart()
    for work in [distributed.all_reduce(tensor, async_op=True) for _, tensor in tensors]:
        work.wait()
    stopwatch.note('gloo together')


def run_gloo_one_by_one(stopwatch, tensors):
    distributed.barrier()
    submit = 0.0
    stopwatch.restart()
    for _, tensor in tensors:
        start = time.perf_counter()
        work = distributed.all_reduce(tensor, async_op=True)
        submit += time.perf_counter() - start
        work.wait()
    stopwatch.note('gloo one by one')
    stopwatch.add('- gloo submit', (submit, submit))


def begin_gloo():
    path = hvd.broadcast_object(tempfile.mktemp(prefix='hvd-gloo-'), name='gloo')
    distributed.init_process_group('gloo', init_method=f'file://{path}', rank=hvd.rank(),
                                   world_size=hvd.size())


def run_backward(stopwatch, name, optimizer, parameters, gradients):
    hvd.barrier()
    stopwatch.restart()
    torch.autograd.backward(parameters, gradients)
    stopwatch.note(name)
    if hasattr(optimizer, 'synchronize'):
        optimizer.synchronize()
        stopwatch.note("step's end")
    optimizer.zero_grad()


def run_optimizer(stopwatch, count, steps):
    """The gradients are given, so that backward does nothing but add them and call hooks."""
    parameters = [torch.nn.Parameter(torch.zeros(1)) for _ in range(count)]
    gradients = [torch.ones(1) for _ in parameters]
    plain = torch.optim.SGD(parameters, lr=0.1)
    for _ in range(WARM_UP_STEPS + steps):
        run_backward(stopwatch, 'without hooks', plain, parameters, gradients)
    names = [(f'optimizer.{index}', parameter) for index, parameter in enumerate(parameters)]
    optimizer = hvd.DistributedOptimizer(plain, named_parameters=names)
    for _ in range(WARM_UP_STEPS + steps):
        run_backward(stopwatch, 'with hooks', optimizer, parameters, gradients)


def measure(count, steps, has_gloo):
    stopwatch = Stopwatch()
    tensors = [(f'calls.{index}', torch.zeros(1)) for index in range(count)]
    for _ in range(WARM_UP_STEPS + steps):
        run_calls(stopwatch, tensors)
        run_together(stopwatch, tensors)
        run_one_by_one(stopwatch, tensors)
        if has_gloo:
            run_gloo(stopwatch, tensors)
            run_gloo_one_by_one(stopwatch, tensors)
    figures = stopwatch.all_figures(count)
    if hvd.size() > 1:
        run_optimizer(stopwatch, count, steps)
        hooks, none = (stopwatch.figures(name, count) for name in ('with hooks', 'without hooks'))
        figures['backward'] = [[a - b for a, b in zip(*pair)] for pair in zip(hooks, none)]
        figures["step's end"] = stopwatch.figures("step's end", count)
    return figures


def keep_busy():
    number = 0
    while True:
        number += 1


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--count', type=int, default=161)
    parser.add_argument('--steps', type=int, default=200)
    parser.add_argument('--busy', action='store_true')
    parser.add_argument('--gloo', action='store_true')
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    hvd.init()
    if arguments.gloo:
        begin_gloo()
    if arguments.busy:
        threading.Thread(target=keep_busy, daemon=True).start()
    figures = measure(arguments.count, arguments.steps, arguments.gloo)
    if hvd.rank() == 0:
        print_figures(figures)
    hvd.shutdown()


if __name__ == '__main__':
    main()
