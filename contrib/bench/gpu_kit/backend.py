# SPDX-License-Identifier: Apache-2.0
"""Probes of the backend hvd of torch.distributed with tensors of the GPU."""

import os
import time

import torch
import torch.distributed as dist

import horovod.torch as hvd
import horovod.torch.distributed  # noqa: F401 # registers the backend


def _begin():
    if not dist.is_initialized():
        dist.init_process_group('hvd', init_method=f'file:///tmp/gpu_kit.hvd.{os.getppid()}',
                                rank=hvd.rank(), world_size=hvd.size())


def _attempt(gpu, findings, name, function):
    def run():
        function()
        gpu.synchronize()
    findings.check_call(f'torch.distributed over hvd: {name}', run)


def distributed(gpu, findings):
    """Checks each collective, and messages between two ranks."""
    _begin()
    size, rank = hvd.size(), hvd.rank()
    part = torch.ones(8, device=gpu.name)
    whole = torch.ones(8 * size, device=gpu.name)
    calls = {
        'all_reduce': lambda: dist.all_reduce(part),
        'broadcast': lambda: dist.broadcast(part, 0),
        'reduce': lambda: dist.reduce(part, 0),
        'reduce_scatter_tensor': lambda: dist.reduce_scatter_tensor(part, whole),
        'all_gather_into_tensor': lambda: dist.all_gather_into_tensor(whole, part),
        'all_gather': lambda: dist.all_gather([part.clone() for _ in range(size)], part),
        'all_to_all_single': lambda: dist.all_to_all_single(whole.clone(), whole),
        'gather': lambda: dist.gather(
            part, [part.clone() for _ in range(size)] if rank == 0 else None),
        'scatter': lambda: dist.scatter(
            part, [part.clone() for _ in range(size)] if rank == 0 else None),
        'barrier': dist.barrier,
    }
    if size > 1:
        calls['send and recv'] = lambda: (
            dist.send(part, 1) if rank == 0 else dist.recv(part, 0) if rank == 1 else None)
    for name, call in calls.items():
        _attempt(gpu, findings, name, call)


def wrappers(gpu, findings):
    """Checks trainings by DistributedDataParallel and fully_shard."""
    _begin()

    def train(wrap):
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(),
                                    torch.nn.Linear(256, 8)).to(gpu.name)
        model = wrap(model)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(3):
            optimizer.zero_grad()
            model(torch.randn(16, 64, device=gpu.name)).pow(2).mean().backward()
            optimizer.step()

    _attempt(gpu, findings, 'DistributedDataParallel',
             lambda: train(torch.nn.parallel.DistributedDataParallel))
    if tuple(map(int, torch.__version__.split('.')[:2])) < (2, 6):
        return
    from torch.distributed.fsdp import fully_shard
    _attempt(gpu, findings, 'fully_shard', lambda: train(fully_shard))


def futures(gpu, findings):
    """A future must not hold up the default stream, and a wait must hold the caller's stream."""
    _begin()
    if not gpu.is_cuda or hvd.size() > 1:
        return
    tensor, side = torch.ones(1000, device=gpu.name), gpu.new_stream()
    dist.all_reduce(tensor)
    gpu.synchronize()

    def begin_late():
        with gpu.on(side):
            gpu.sleep(800000)
            work = dist.all_reduce(tensor, async_op=True)
        future = work.get_future()
        time.sleep(0.2)  # lets the futures' thread enqueue its wait
        return work, future

    _, future = begin_late()
    event = torch.cuda.Event()
    begin = time.perf_counter()
    torch.ones(10, device=gpu.name).add_(1)
    event.record()
    event.synchronize()
    took_ms = (time.perf_counter() - begin) * 1e3
    findings.check(took_ms < 300, 'the default stream goes on while a future is under way',
                   f'it stood still for {took_ms:.0f} ms')
    future.wait()
    gpu.synchronize()

    work, _ = begin_late()
    other = gpu.new_stream()
    with gpu.on(other):
        work.wait()
        event.record(other)
    findings.check(not event.query(), 'wait() holds the caller\'s stream if there is a future',
                   'the stream went on before the collective had ended')
    gpu.synchronize()


def end():
    """Ends the process group, if a probe has begun one."""
    if dist.is_initialized():
        dist.destroy_process_group()


PARTS = (distributed, wrappers, futures)
