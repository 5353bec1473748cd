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
  one by one   submit and synchronize, with the wait for the others, before the next tensor

With --gloo also what torch.distributed's calls cost on its gloo backend, in the same processes:
all_reduce(async_op=True), wait() of one that is done, and both one by one. In C, without Python,
it is `agreement` that tells.

With --busy another Python thread computes all the time: who lets go of the interpreter lock waits
for his next turn.
"""

import argparse
import statistics
import tempfile
import threading
import time

import horovod.torch as hvd
import torch
from torch import distributed

WARM_UP_STEPS = 30


class Stopwatch:
    """Notes, for each name, clock and processor time since the last note."""

    def __init__(self):
        self.times = {}
        self.restart()

    def restart(self):
        self._last = time.perf_counter(), time.thread_time()

    def note(self, name):
        now = time.perf_counter(), time.thread_time()
        self.times.setdefault(name, []).append(
            [after - before for after, before in zip(now, self._last)])
        self.restart()

    def figures(self, name, count):
        """(median, first decile) in microseconds per tensor, of clock and of processor."""
        columns = [sorted(column) for column in zip(*self.times[name][WARM_UP_STEPS:])]
        return [(statistics.median(column) / count * 1e6, column[len(column) // 10] / count * 1e6)
                for column in columns]


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


def run_one_by_one(stopwatch, tensors):
    hvd.barrier()
    stopwatch.restart()
    for name, tensor in tensors:
        hvd.synchronize(hvd.allreduce_async_(tensor, name=name))
    stopwatch.note('one by one')


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
    for _, tensor in tensors:
        distributed.all_reduce(tensor, async_op=True).wait()
    stopwatch.note('gloo one by one')


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
        run_one_by_one(stopwatch, tensors)
        if has_gloo:
            run_gloo(stopwatch, tensors)
    figures = {name: stopwatch.figures(name, count) for name in stopwatch.times}
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
        print(f'{"us per tensor":<16}{"clock":>8}{"1/10":>8}{"cpu":>8}{"1/10":>8}')
        for name, pairs in figures.items():
            print(f'{name:<16}' + ''.join(f'{value:8.2f}' for pair in pairs for value in pair))
    hvd.shutdown()


if __name__ == '__main__':
    main()
