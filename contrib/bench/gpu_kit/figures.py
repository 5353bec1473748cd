# SPDX-License-Identifier: Apache-2.0
"""Probes that measure the first collective, small collectives, hvd beside torch.distributed, packing,
the host path, and steps of a training."""

import os
import sys
import time

import torch
import torch.distributed

import horovod.torch as hvd
import horovod.torch.optimizer

HERE = os.path.dirname(os.path.abspath(__file__))
SIZES = (8, 64 << 10, 1 << 20, 16 << 20, 128 << 20)
PACKED_SIZES = (16 << 10, 64 << 10, 256 << 10, 512 << 10, 1 << 20)
SWITCHED_SIZES = (128, 1 << 10, 16 << 10, 128 << 10)
PACK_BELOW = {'packed': str(1 << 40), 'apart': '0', 'auto': 'auto'}


def memory(gpu, findings):
    """Measures the memory and the time that the first collective takes."""
    tensor = torch.ones(1 << 20, device=gpu.name)
    gpu.synchronize()
    free = gpu.free_bytes()
    took_ms = gpu.time(lambda: hvd.allreduce_(tensor, name='memory', op=hvd.Sum), 1)
    taken = (free - gpu.free_bytes()) >> 20
    findings.check(bool((tensor == hvd.size()).all()),
                   f'the first allreduce of {hvd.size()} rank(s) is right')
    findings.figure(f'first allreduce: {took_ms:.0f} ms, {taken} MiB of GPU memory, of all ranks')


def launch(gpu, findings):
    """Measures small allreduces: the caller's time, and the time until they are done."""
    blocking = os.environ.get('NCCL_COMM_BLOCKING', 'unset')
    for count in (1, 64):
        tensors = [torch.zeros(2, device=gpu.name) for _ in range(count)]

        def reduce(tensors=tensors):
            handles = [hvd.allreduce_async_(each, name=f'launch.{index}', op=hvd.Sum)
                       for index, each in enumerate(tensors)]
            for handle in handles:
                hvd.synchronize(handle)

        gpu.time(reduce, 20)
        turns = []
        for _ in range(9):
            hvd.barrier()
            gpu.synchronize()
            begin = time.perf_counter()
            for _ in range(20):
                reduce()
            host = time.perf_counter() - begin
            gpu.synchronize()
            turns.append((host, time.perf_counter() - begin))
        host, whole = (_median(each) / 20 * 1e6 for each in zip(*turns))
        findings.figure(f'{count} tensor(s) of 8 bytes, {hvd.size()} rank(s), NCCL_COMM_BLOCKING '
                        f'{blocking}: {host:.1f} us of the caller, {whole:.1f} us until done')


def beside(gpu, findings):
    """Measures hvd and torch.distributed in turns on the same tensors. The calls of a turn are queued
    behind a kernel that sleeps: "stream" is the time of each call on the stream, "host" the caller's
    time."""
    _begin_peer(gpu)
    alone, under_mps = hvd.size() == 1, 'CUDA_MPS_PIPE_DIRECTORY' in os.environ
    most = 64 << 10 if not gpu.is_cuda else SIZES[-1] if alone else (16 if under_mps else 1) << 20
    for size in SIZES:
        if size > most:
            break
        tensor = torch.zeros(size // 4, device=gpu.name)

        def by_hvd(tensor=tensor, size=size):
            hvd.synchronize(hvd.allreduce_async_(tensor, name=f'beside.{size}', op=hvd.Sum))

        def by_peer(tensor=tensor):
            torch.distributed.all_reduce(tensor)

        us = _queue(gpu, {'hvd': by_hvd, 'peer': by_peer}, 7 if alone else 3, 40 if alone else 5)
        (host, stream), (peer_host, peer_stream) = us['hvd'], us['peer']
        findings.figure(
            f'allreduce of {size} bytes, {hvd.size()} rank(s), us of hvd, of '
            f'{torch.distributed.get_backend()}, ratio: host {host:.1f}, {peer_host:.1f}, '
            f'{host / peer_host:.2f}; stream {stream:.1f}, {peer_stream:.1f}, '
            f'{stream / peer_stream:.2f}')
    torch.distributed.destroy_process_group()


def packing(gpu, findings):
    """Measures groups of 8 equal tensors: always packed, never packed, and packed up to the size that hvd
    has measured ("auto"). "auto" should be as fast as the faster of the others. Each turn is a job of its
    own."""
    sizes = [size for size in PACKED_SIZES if gpu.is_cuda or size <= 64 << 10]
    seen = {(size, how): [] for size in sizes for how in PACK_BELOW}
    for turn in range(2):
        for how in PACK_BELOW if turn % 2 else reversed(PACK_BELOW):
            hvd.shutdown()
            os.environ['HVD_GPU_PACK_BELOW'] = PACK_BELOW[how]
            hvd.init()
            for size in sizes:
                tensors = [torch.zeros(size // 4, device=gpu.name) for _ in range(8)]

                def reduce(tensors=tensors, size=size):
                    hvd.synchronize(hvd.grouped_allreduce_async_(tensors, name=f'pack.{size}',
                                                                 op=hvd.Sum))

                seen[size, how].append(_queue(gpu, {how: reduce}, 1, 5)[how][1])
    for size in sizes:
        us = {how: min(seen[size, how]) for how in PACK_BELOW}
        findings.figure(
            f'8 tensors of {size} bytes, {hvd.size()} rank(s), us on the stream: '
            + ', '.join(f'{how} {each:.1f}' for how, each in us.items())
            + f'; packed / apart {us["packed"] / us["apart"]:.2f}')


def windows(gpu, findings):
    """Measures packed groups of 8 small tensors, in windows of NCCL and in plain memory. The log of device.sh
    has a warning if NCCL refuses windows."""
    os.environ['HVD_GPU_PACK_BELOW'] = PACK_BELOW['packed']
    _switched(gpu, findings, 'HVD_NCCL_WINDOWS', {'1': 'windows', '0': 'plain'})


def one_kernel(gpu, findings):
    """Measures groups of 8 small tensors, reduced by one kernel and by NCCL. The log of device.sh has a
    warning if a rank cannot open the memory of the other."""
    _switched(gpu, findings, 'HVD_GPU_ONE_KERNEL', {'1048576': 'one kernel', '0': 'NCCL'})


def _switched(gpu, findings, variable, values):
    """Measures groups of 8 small tensors with two values of a variable. Each turn is a job of its own."""
    seen, right = {}, True
    for turn in range(4):
        for value in values if turn % 2 else reversed(values):
            hvd.shutdown()
            os.environ[variable] = value
            hvd.init()
            for size in SWITCHED_SIZES:
                tensors = [torch.ones(size // 4, device=gpu.name) for _ in range(8)]

                def reduce(tensors=tensors, size=size):
                    hvd.synchronize(hvd.grouped_allreduce_async_(tensors, name=f'small.{size}',
                                                                 op=hvd.Average))

                seen.setdefault((size, value), []).append(_queue(gpu, {value: reduce}, 1, 5)[value][1])
                right &= all(bool((each == 1).all()) for each in tensors)
    one, other = values.values()
    findings.check(right, f'averages of {hvd.size()} ranks are right: {one}, {other}')
    for size in SWITCHED_SIZES:
        on, off = (min(seen[size, value]) for value in values)
        findings.figure(f'8 tensors of {size} bytes, {hvd.size()} rank(s), us on the stream: '
                        f'{one} {on:.1f}, {other} {off:.1f}; {one} / {other} {on / off:.2f}')


def hostpath(gpu, findings):
    """Measures the host path, and for comparison the copies to the host and back alone."""
    for mib in (1, 16, 128) if gpu.is_cuda else (1, 4):
        tensor = torch.ones(mib << 18, device=gpu.name)
        pinned = torch.empty(mib << 18, pin_memory=gpu.is_cuda)

        def copy(tensor=tensor, pinned=pinned):
            pinned.copy_(tensor, non_blocking=True)
            tensor.copy_(pinned, non_blocking=True)

        def reduce(tensor=tensor, mib=mib):
            hvd.allreduce_(tensor, name=f'hostpath.{mib}', op=hvd.Max)

        ms = take_turns(gpu, {'copies': copy, 'hvd': reduce}, 7, 3)
        findings.check(bool((tensor == 1).all()), f'host path: {mib} MiB are right')
        findings.figure(f'host path, {hvd.size()} ranks, {mib} MiB: {ms["hvd"]:.2f} ms, '
                        f'{mib / 1.024 / ms["hvd"]:.2f} GiB/s; copies down and up alone '
                        f'{ms["copies"]:.2f} ms; ratio {ms["copies"] / ms["hvd"]:.2f}')


def overhead(gpu, findings):
    """Measures a step of small layers with DistributedOptimizer and without it: the cost of hooks and
    waits."""
    _exchange_on_one_rank()
    steps, layers = {}, 80 if gpu.is_cuda else 8
    for name in ('plain', 'hvd', 'hvd in 4 groups'):
        torch.manual_seed(0)
        model = torch.nn.Sequential(*[torch.nn.Linear(256, 256) for _ in range(layers)])
        model.to(gpu.name)
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
        if name != 'plain':
            optimizer = hvd.DistributedOptimizer(optimizer, _named(name, model),
                                                 groups=4 if 'groups' in name else None)
        rows = torch.randn(64, 256, device=gpu.name)

        def step(model=model, optimizer=optimizer, rows=rows):
            optimizer.zero_grad()
            model(rows).pow(2).mean().backward()
            optimizer.step()
        steps[name] = step
    ms = take_turns(gpu, steps, 9 if gpu.is_cuda else 3, 10 if gpu.is_cuda else 1)
    findings.figure(f'step of {2 * layers} small gradients, {hvd.size()} rank(s): {_list(ms)}; '
                    f'{(ms["hvd"] - ms["plain"]) * 1e3 / (2 * layers):.1f} us a gradient')


def resnet(gpu, findings):
    """Measures a step of ResNet-50 alone, with hvd, and with DistributedDataParallel over NCCL or Gloo."""
    sys.path.append(os.path.join(HERE, '..', '..', 'examples', 'pytorch'))
    import networks

    _exchange_on_one_rank()
    _begin_peer(gpu)
    pixels, batch = (224, 32) if gpu.is_cuda else (32, 2)
    pictures = torch.rand(batch, 3, pixels, pixels, device=gpu.name)
    pictures = pictures.to(memory_format=torch.channels_last)
    labels = torch.randint(1000, (batch,), device=gpu.name)
    steps = {}
    for name in ('alone', 'hvd', 'hvd bf16', 'ddp', 'ddp views'):
        torch.manual_seed(1)
        model = networks.resnet50(1000).to(gpu.name).to(memory_format=torch.channels_last)
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-4, momentum=0.9)
        if 'hvd' in name:
            optimizer = hvd.DistributedOptimizer(
                optimizer, _named(name, model),
                compression=getattr(hvd.Compression, 'bf16' if 'bf16' in name else 'none'))
        if 'ddp' in name:
            model = torch.nn.parallel.DistributedDataParallel(
                model, gradient_as_bucket_view='views' in name)

        def step(model=model, optimizer=optimizer):
            optimizer.zero_grad()
            with torch.autocast(gpu.name, dtype=torch.bfloat16):
                loss = torch.nn.functional.cross_entropy(model(pictures), labels)
            loss.backward()
            optimizer.step()
        steps[name] = step
    count = 1 if not gpu.is_cuda else 10 if hvd.size() == 1 else 4
    ms = take_turns(gpu, steps, 5 if gpu.is_cuda else 1, count)
    findings.figure(f'step of ResNet-50, bfloat16, batch {batch}, {hvd.size()} rank(s): '
                    + _list(ms))
    torch.distributed.destroy_process_group()


def take_turns(gpu, calls, turns, count):
    """Returns {name: ms}: medians of turns in which the calls alternate."""
    seen = {name: [] for name in calls}
    for call in calls.values():
        gpu.time(call, 3 if gpu.is_cuda else 1)
    for turn in range(turns):
        for name in list(calls)[::1 if turn % 2 else -1]:
            hvd.barrier()
            seen[name].append(gpu.time(calls[name], count))
    return {name: _median(each) for name, each in seen.items()}


def _queue(gpu, calls, turns, count):
    """Returns {name: (host, stream)}: microseconds of a call on the slowest rank, medians of turns in
    which the calls alternate. All calls of a turn are queued while the stream sleeps."""
    for call in calls.values():
        for _ in range(5):
            call()
    gpu.synchronize()
    pause_us = 1.5 * count * max(gpu.queue(call, count)[0] for call in calls.values())
    seen = {name: [] for name in calls}
    for turn in range(turns):
        for name in list(calls)[::1 if turn % 2 else -1]:
            gpu.synchronize()
            hvd.barrier()
            pair = torch.tensor(gpu.queue(calls[name], count, pause_us), dtype=torch.float64)
            seen[name].append(hvd.allreduce(pair, name='slowest', op=hvd.Max).tolist())
    return {name: [_median(column) for column in zip(*each)] for name, each in seen.items()}


def _begin_peer(gpu):
    """Starts torch.distributed on the same ranks, over NCCL or Gloo."""
    torch.distributed.init_process_group(
        'nccl' if gpu.is_cuda else 'gloo', init_method=f'file:///tmp/gpu_kit.nccl.{os.getppid()}',
        rank=hvd.rank(), world_size=hvd.size())


def _exchange_on_one_rank():
    """Makes DistributedOptimizer reduce gradients on one rank, as it does in elastic jobs only, to
    measure its cost without the time of NCCL."""
    horovod.torch.optimizer.is_elastic = lambda: True


def _named(prefix, model):
    return [(f'{prefix}.{name}', each) for name, each in model.named_parameters()]


def _median(values):
    return sorted(values)[len(values) // 2]


def _list(ms):
    return ', '.join(f'{name} {each:.2f} ms' for name, each in ms.items())


PARTS = (memory, launch, beside, packing, windows, one_kernel, hostpath, overhead, resnet)
