# SPDX-License-Identifier: Apache-2.0
"""Probes of behaviour that only a real GPU shows: streams, captures, a full GPU, large tensors, the
death of a rank."""

import os
import signal
import threading
import time

import torch

import horovod.torch as hvd
from findings import first_line
from horovod.common.exceptions import HorovodInternalError

# A type in which the sum of two values is exact, or is rounded as in the type itself.
WIDE = {torch.float16: torch.float64, torch.bfloat16: torch.float64,
        torch.float32: torch.float32, torch.float64: torch.float64,
        torch.int32: torch.int32, torch.int64: torch.int64, torch.uint8: torch.uint8}


def streams(gpu, findings):
    """Results are right if tensors start on one stream, are synchronized on another, and are
    freed meanwhile."""
    rounds, wrong = 150, 0
    many = [gpu.new_stream() for _ in range(4)]
    generator = torch.Generator().manual_seed(5)  # the same on all ranks

    def choose(limit):
        return int(torch.randint(0, limit, (1,), generator=generator))

    for number in range(rounds):
        first, second, count = many[choose(4)], many[choose(4)], 1 + choose(200000)
        with gpu.on(first):
            tensor = torch.full((count,), -1.0, device=gpu.name)
            gpu.sleep(300)
            tensor.fill_(number + hvd.rank())
            handle = hvd.allreduce_async(tensor, name=f'streams.{number % 7}', op=hvd.Sum)
            del tensor
        with gpu.on(second):
            result = hvd.synchronize(handle)
            total = result.sum(dtype=torch.float64)
            del result
            # The allocator may give this the memory that was just freed.
            torch.full((count,), 1e9, device=gpu.name)
            wrong += float(total) != count * (number + (hvd.size() - 1) / 2) * hvd.size()
    findings.check(wrong == 0, 'collectives started on one stream and synchronized on another',
                   f'{wrong} of {rounds} are wrong')


def graphs(gpu, findings):
    """A capture refuses collectives and stays valid; other threads may capture while collectives run."""
    if gpu.is_cuda:
        _refuse_in_capture(gpu, findings)
        _capture_beside(gpu, findings)


def _refuse_in_capture(gpu, findings):
    tensor = torch.ones(1000, device=gpu.name)
    hvd.allreduce_(tensor.clone(), name='graphs.first', op=hvd.Sum)
    graph, refusal = torch.cuda.CUDAGraph(), 'it was taken'
    with torch.cuda.graph(graph):
        result = tensor * 3
        try:
            hvd.allreduce_async_(result, name='graphs.refused', op=hvd.Sum)
        except Exception as error:  # pylint: disable=broad-except
            refusal = str(error)
    tensor.fill_(2)
    graph.replay()
    gpu.synchronize()
    findings.check('CUDA graph' in refusal, 'a capture refuses a collective with a sentence',
                   refusal)
    findings.check(bool((result == 6).all()), 'the capture stays valid')


def _capture_beside(gpu, findings):
    rounds, failures, has_ended = 300, [], threading.Event()
    side, shared = torch.cuda.Stream(), torch.ones(50000, device=gpu.name)
    tensor, captures = torch.ones(1000, device=gpu.name), 0

    def reduce():
        try:
            with torch.cuda.stream(side):
                for _ in range(rounds):
                    hvd.allreduce_(shared, name='graphs.beside', op=hvd.Max)
        except Exception as error:  # pylint: disable=broad-except
            failures.append(error)
        has_ended.set()

    gpu.synchronize()
    thread = threading.Thread(target=reduce)
    thread.start()
    while not has_ended.is_set() and not failures:
        try:
            with torch.cuda.graph(torch.cuda.CUDAGraph()):
                _ = tensor * 3
            captures += 1
        except Exception as error:  # pylint: disable=broad-except
            failures.append(error)
    thread.join()
    findings.check(not failures, f'{captures} captures in global mode beside {rounds} allreduces',
                   first_line(failures[0]) if failures else '')


def graphed(gpu, findings):
    """Ranks that train with make_graphed_callables and DistributedOptimizer keep equal models."""
    if not gpu.is_cuda:
        return
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(),
                                torch.nn.Linear(128, 8)).to(gpu.name)
    rows = torch.randn(32, 64, device=gpu.name)
    forward = torch.cuda.make_graphed_callables(model, (rows.clone(),))
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1),
                                         model.named_parameters())
    hvd.broadcast_parameters(model.state_dict(), 0)
    for _ in range(5):
        optimizer.zero_grad(set_to_none=False)
        forward(rows * (hvd.rank() + 1)).pow(2).mean().backward()
        optimizer.step()
    weights = torch.cat([each.detach().flatten() for each in model.parameters()])
    least, most = (hvd.allreduce(weights, op=op, name=f'graphed.{op}')
                   for op in (hvd.Min, hvd.Max))
    findings.check(torch.equal(least, most) and bool(torch.isfinite(weights).all()),
                   'ranks that train by make_graphed_callables stay alike')


def big(gpu, findings):
    """Kernels handle more than 2^31 elements."""
    count = (1 << 31) + 4099 if gpu.is_cuda else 100003
    tensor = torch.full((count,), 3, dtype=torch.uint8, device=gpu.name)
    tensor[-1] = 5
    hvd.allreduce_(tensor, name='big.uint8', op=hvd.Sum, prescale_factor=2.0)
    gpu.synchronize()
    findings.check(int(tensor[-1]) == 10 * hvd.size()
                   and bool((tensor[:-1:1048573] == 6 * hvd.size()).all())
                   and bool((tensor[count // 2:-1] == 6 * hvd.size()).all()),
                   f'uint8: {count} elements, scaled',
                   f'{int(tensor[0])} ... {int(tensor[-2])} {int(tensor[-1])}')
    del tensor
    tensor = torch.full((count,), 1.5, device=gpu.name)
    tensor[-1] = 2.5
    result = hvd.allreduce(tensor, name='big.wire', op=hvd.Sum,
                           compression=hvd.Compression.bf16)
    gpu.synchronize()
    findings.check(float(result[-1]) == 2.5 * hvd.size()
                   and bool((result[:-1:1048573] == 1.5 * hvd.size()).all())
                   and float(result[-2]) == 1.5 * hvd.size(),
                   f'float32 as bfloat16 between ranks: {count} elements',
                   f'{float(result[0])} ... {float(result[-2])} {float(result[-1])}')


def same(gpu, findings):
    """On two ranks, results equal those of the host bit by bit. Sums of more ranks depend on the order."""
    wrong, count = [], 0
    for dtype, wide in WIDE.items():
        for op in (hvd.Sum, hvd.Min, hvd.Max) + (hvd.Average,) * dtype.is_floating_point:
            for length in (1, 1031, 300000):
                count += 1
                generator = torch.Generator().manual_seed(count)
                values = torch.randn((2, length), generator=generator, dtype=torch.float64)
                values = (values if dtype.is_floating_point else (values * 20).abs()).to(dtype)
                result = hvd.allreduce(values[hvd.rank()].to(gpu.name), op=op, name=f'{count}')
                host = values.to(wide)
                host = (host.amin(0) if op == hvd.Min else host.amax(0) if op == hvd.Max
                        else host.sum(0, dtype=wide) / (2 if op == hvd.Average else 1))
                if not torch.equal(result.cpu(), host.to(dtype)):
                    wrong.append(f'{dtype}, op {op}, {length} elements')
    findings.check(not wrong, f'{count} allreduces equal the reference to the last bit',
                   '; '.join(wrong))


def full(gpu, findings):
    """When rank 0 fills the GPU, hvd continues in host memory, and later returns to GPU memory."""
    if not gpu.is_cuda:
        return
    tensors = [torch.ones(100000 + each, device=gpu.name) for each in range(300)]

    def reduce(when):
        handles = [hvd.allreduce_async_(each, name=f'full.{index}', op=hvd.Max)
                   for index, each in enumerate(tensors)]
        begin = time.perf_counter()
        for handle in handles:
            hvd.synchronize(handle)
        gpu.synchronize()
        took_ms = (time.perf_counter() - begin) * 1e3
        findings.check(all(bool((each == 1).all()) for each in tensors[::37]),
                       f'300 tensors, {when}: {took_ms:.1f} ms')

    reduce('with memory left')
    hvd.barrier()
    hoard = _take_memory(gpu) if hvd.rank() == 0 else []
    findings.figure(f'the GPU is filled: {gpu.free_bytes() >> 20} MiB are free')
    hvd.barrier()
    findings.check_call('300 tensors reduced on a full GPU', lambda: reduce('GPU full'))
    findings.check_call('allgather on a full GPU',
                        lambda: hvd.allgather(tensors[0][:1000], name='full.gather'))
    hoard.clear()
    torch.cuda.empty_cache()
    hvd.barrier()
    reduce('afterwards')


def _take_memory(gpu):
    """Returns tensors that fill the GPU, except three small pieces that torch itself needs."""
    hoard, piece = [], 1 << 30
    while piece >= 1 << 20:
        try:
            hoard.append(torch.empty(piece, dtype=torch.uint8, device=gpu.name))
        except torch.cuda.OutOfMemoryError:
            piece >>= 1
    del hoard[-3:]
    return hoard


def kill(gpu, findings):
    """The last rank dies between two collectives: the others get an error, and the tensor is complete or
    NaN. Ends the process."""
    tensor = torch.ones(1 << 20, device=gpu.name)
    for _ in range(3):
        hvd.allreduce_(tensor, name='kill', op=hvd.Max)
    gpu.synchronize()
    hvd.barrier()
    if hvd.rank() == hvd.size() - 1:
        time.sleep(1)  # meanwhile the others reduce
        os.kill(os.getpid(), signal.SIGKILL)
    # hvdrun ends the other ranks half a second after the first; NCCL's abort may take longer.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    begin = time.perf_counter()
    try:
        # NCCL's abort ends the first collective without an error; a later one raises it.
        for _ in range(200):
            hvd.allreduce_(tensor, name='kill', op=hvd.Max)
            gpu.synchronize()
            time.sleep(0.02)
        findings.check(False, 'a death is reported', 'no error in 200 allreduces')
    except HorovodInternalError as error:
        took_s = time.perf_counter() - begin
        findings.check(took_s < 12, f'a death is reported after {took_s:.1f} s: {str(error)[:160]}')
        findings.check_call('CUDA works after the abort', gpu.synchronize)
        findings.check(bool(torch.isnan(tensor).all()) or bool((tensor == 1).all()),
                       'after a death the tensor is whole or NaN', f'{tensor[:3].tolist()}')
    os._exit(findings.defects > 0)


PARTS = (streams, graphs, graphed, big, same, full, kill)
