# SPDX-License-Identifier: Apache-2.0
"""What hvd adds to one allreduce on a GPU, what packing a group of tensors gains, and whether its
results are right to the last bit; each rank of a job of one node. device.sh runs it.

    hvdrun -np 2 python3 cost.py allreduce
    hvdrun -np 2 python3 cost.py packing
    hvdrun -np 2 python3 cost.py same

allreduce: hvd and torch.distributed take turns in the same processes, on the same tensors. Calls of
a turn are queued behind a kernel that sleeps, so that "stream" is what they take there one behind
the other, and "host" what the caller spends on each meanwhile; both by the slowest rank, medians of
the turns.

packing: groups of equal tensors, packed, not packed, and as hvd has measured; on the stream. The
limit is right where "auto" is as fast as the better of the two.

With --device cpu (Gloo) there is no stream: for trying this script.
"""

import argparse
import functools
import os
import statistics
import time

import torch
import torch.distributed

import horovod.torch as hvd

SIZES = (8, 64 << 10, 1 << 20, 16 << 20, 128 << 20)
PACKED_SIZES = (16 << 10, 64 << 10, 256 << 10, 512 << 10, 1 << 20, 2 << 20, 4 << 20, 16 << 20)
PACKED_TENSORS = 8  # of the largest so many fill a batch
PACKED_TURNS = 5  # each begins a job of its own
PACK_BELOW = {'packed': str(1 << 40), 'apart': '0', 'auto': 'auto'}
# The type in which a sum of two is exact, or rounded as in the type itself.
WIDE = {torch.float16: torch.float64, torch.bfloat16: torch.float64,
        torch.float32: torch.float32, torch.float64: torch.float64,
        torch.int32: torch.int32, torch.int64: torch.int64, torch.uint8: torch.uint8}


def say(*words):
    if hvd.rank() == 0:
        print(*words, flush=True)


def parse():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('what', choices=('allreduce', 'packing', 'same'))
    parser.add_argument('--device', choices=('cuda', 'cpu'), default='cuda')
    parser.add_argument('--turns', type=int, default=21)
    parser.add_argument('--calls', type=int, default=50, help='of a turn')
    parser.add_argument('--most', type=int, default=SIZES[-1], help='bytes')
    return parser.parse_args()


def begin(options):
    """The job, and this rank's device."""
    # NCCL takes several ranks on one GPU if each says that it is on a host of its own. Packing is
    # measured on all GPUs if there are several.
    if options.what != 'packing' or torch.cuda.device_count() < 2:
        os.environ['NCCL_HOSTID'] = f'kit.{os.environ.get("HOROVOD_RANK", 0)}'
    hvd.init()
    if options.device == 'cpu':
        torch.set_num_threads(1)
        return torch.device('cpu')
    torch.cuda.set_device(hvd.local_rank() % torch.cuda.device_count())
    return torch.device('cuda', torch.cuda.current_device())


# --- what it costs ---

def meet_peer(device):
    """torch.distributed of the same ranks."""
    backend = 'nccl' if device.type == 'cuda' else 'gloo'
    port = hvd.broadcast_object(free_port() if hvd.rank() == 0 else None, 0)
    os.environ.setdefault('GLOO_SOCKET_IFNAME', 'lo')
    os.environ.setdefault('NCCL_SOCKET_IFNAME', 'lo')
    os.environ.setdefault('USE_LIBUV', '0')  # Debian's torch is built without
    torch.distributed.init_process_group(backend, init_method=f'tcp://127.0.0.1:{port}',
                                         rank=hvd.rank(), world_size=hvd.size())


def free_port():
    import socket
    with socket.socket() as probe:
        probe.bind(('127.0.0.1', 0))
        return probe.getsockname()[1]


def calls_of(tensor):
    name = f'bench.{tensor.numel()}'

    def by_hvd():
        hvd.synchronize(hvd.allreduce_async_(tensor, name=name, op=hvd.Sum))

    return {'hvd': by_hvd, 'peer': functools.partial(torch.distributed.all_reduce, tensor)}


def on_cpu(call, count):
    """Microseconds of a call: of the caller, and on the stream."""
    hvd.barrier()
    start = time.perf_counter()
    for _ in range(count):
        call()
    took = (time.perf_counter() - start) / count * 1e6
    return took, took


def on_gpu(call, count, sleep=0):
    """The same; the stream sleeps first, for so many cycles."""
    first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda.synchronize()
    hvd.barrier()
    if sleep > 0:
        torch.cuda._sleep(sleep)
    first.record()
    start = time.perf_counter()
    for _ in range(count):
        call()
    took = (time.perf_counter() - start) / count * 1e6
    last.record()
    last.synchronize()
    return took, first.elapsed_time(last) / count * 1e3


def cycles_for(calls, count):
    """So many that the stream still sleeps when all calls are queued."""
    host_us = max(on_gpu(call, count)[0] for call in calls.values())
    begin_s = time.perf_counter()
    torch.cuda._sleep(10000000)
    torch.cuda.synchronize()
    cycles_a_us = 10000000 / ((time.perf_counter() - begin_s) * 1e6)
    return int(1.5 * host_us * count * cycles_a_us)


def slowest(pair):
    return hvd.allreduce(torch.tensor(pair, dtype=torch.float64), op=hvd.Max).tolist()


def measure(tensor, options):
    """{who: (host, stream)}"""
    calls = calls_of(tensor)
    look = on_cpu
    for call in calls.values():
        for _ in range(5):
            call()
    if tensor.is_cuda:
        look = functools.partial(on_gpu, sleep=cycles_for(calls, options.calls))
    seen = {who: [] for who in calls}
    for turn in range(options.turns):
        for who in calls if turn % 2 else reversed(calls):
            seen[who].append(slowest(look(calls[who], options.calls)))
    return {who: [statistics.median(column) for column in zip(*turns)]
            for who, turns in seen.items()}


def allreduce(device, options):
    meet_peer(device)
    backend = torch.distributed.get_backend()
    say(f'# allreduce, {hvd.size()} rank(s) on one {device.type}; us a call, beside '
        f"torch.distributed's {backend}\n")
    say('| bytes | hvd, host | peer, host | ratio | hvd, stream | peer, stream | ratio |')
    say('|' + ' ---: |' * 7)
    for size in SIZES:
        if size <= options.most:
            tensor = torch.zeros(size // 4, device=device)
            figures = measure(tensor, options)
            (host, stream), (peer_host, peer_stream) = figures['hvd'], figures['peer']
            say(f'| {size} | {host:.1f} | {peer_host:.1f} | {host / peer_host:.2f} | '
                f'{stream:.1f} | {peer_stream:.1f} | {stream / peer_stream:.2f} |')
    torch.distributed.destroy_process_group()


# --- what packing gains ---

def turn_of(size, device, options):
    """Microseconds on the stream of one group by the slowest rank."""
    tensors = [torch.zeros(size // 4, device=device) for _ in range(PACKED_TENSORS)]
    count = max(1, min(options.calls, PACKED_SIZES[-1] // size))

    def call():
        hvd.synchronize(hvd.grouped_allreduce_async_(tensors, name=f'bench.{size}', op=hvd.Sum))

    for _ in range(5):
        call()
    if device.type != 'cuda':
        return slowest(on_cpu(call, count))[1]
    return slowest(on_gpu(call, count, sleep=cycles_for({'hvd': call}, count)))[1]


def begin_again(how):
    hvd.shutdown()
    os.environ['HVD_GPU_PACK_BELOW'] = PACK_BELOW[how]
    hvd.init()


def packing(device, options):
    sizes = [size for size in PACKED_SIZES if size <= options.most]
    seen = {(size, how): [] for size in sizes for how in PACK_BELOW}
    for turn in range(min(options.turns, PACKED_TURNS)):
        for how in PACK_BELOW if turn % 2 else reversed(PACK_BELOW):
            begin_again(how)
            for size in sizes:
                seen[size, how].append(turn_of(size, device, options))
    say(f'# groups of {PACKED_TENSORS} equal tensors, {hvd.size()} rank(s) on {device.type}; us on '
        'the stream, packed, one by one, and by the limit that hvd has measured\n')
    say('| bytes of each | packed | apart | ratio | auto |')
    say('|' + ' ---: |' * 5)
    for size in sizes:
        packed, apart, auto = (statistics.median(seen[size, how]) for how in PACK_BELOW)
        say(f'| {size} | {packed:.1f} | {apart:.1f} | {packed / apart:.2f} | {auto:.1f} |')


# --- whether it is right ---

def values(rank, dtype, count, salt):
    generator = torch.Generator().manual_seed(1000 * salt + rank)
    if dtype.is_floating_point:
        return torch.randn(count, generator=generator, dtype=torch.float64).to(dtype)
    return torch.randint(0, 100, (count,), generator=generator).to(dtype)


def reference(tensors, op):
    wide = torch.stack([tensor.to(WIDE[tensor.dtype]) for tensor in tensors])
    result = {hvd.Sum: lambda: wide.sum(0, dtype=wide.dtype), hvd.Min: lambda: wide.amin(0),
              hvd.Max: lambda: wide.amax(0),
              hvd.Average: lambda: wide.sum(0, dtype=wide.dtype) / len(tensors)}[op]()
    return result.to(tensors[0].dtype)


def same(device, _):
    """Ends the process with 1 when a result is another than that of the host, by one bit."""
    if hvd.size() > 2:
        raise SystemExit('same: two ranks, for sums of more depend on their order')
    wrong, count = [], 0
    for dtype in WIDE:
        for op in (hvd.Sum, hvd.Min, hvd.Max) + (hvd.Average,) * dtype.is_floating_point:
            for length in (1, 1031, 300000):
                count += 1
                tensors = [values(rank, dtype, length, count) for rank in range(hvd.size())]
                result = hvd.allreduce(tensors[hvd.rank()].to(device), op=op, name=f'{count}')
                if not torch.equal(result.cpu(), reference(tensors, op)):
                    wrong.append(f'{dtype}, op {op}, {length} elements')
    say('\n'.join([f'# {count - len(wrong)} of {count} allreduces of {hvd.size()} rank(s) on one '
                   f'{device.type} equal the reference to the last bit', *wrong]))
    if wrong:
        raise SystemExit(1)


def main():
    options = parse()
    device = begin(options)
    {'allreduce': allreduce, 'packing': packing, 'same': same}[options.what](device, options)
    hvd.shutdown()


if __name__ == '__main__':
    main()
