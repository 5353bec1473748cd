# SPDX-License-Identifier: Apache-2.0
"""A probe that measures allgathers."""

import torch
import torch.distributed

import horovod.torch as hvd
import horovod.torch.collectives.tensors
from figures import _begin_peer, _queue


def gathers(gpu, findings):
    """Measures allgathers whose result libhvd writes to torch's memory, those whose result is copied
    there, and those of torch.distributed."""
    _begin_peer(gpu)
    for size in (64 << 10, 16 << 20) if gpu.is_cuda else (1 << 10,):
        mine = torch.full((size // 4,), float(hvd.rank()), device=gpu.name)
        result = torch.empty(hvd.size() * len(mine), device=gpu.name)

        def gather(mine=mine, size=size):
            return hvd.allgather(mine, name=f'gathers.{size}')

        def copy(gather=gather):
            horovod.torch.collectives.tensors._last_rows.clear()
            return gather()

        def by_peer(mine=mine, result=result):
            if gpu.is_cuda:
                torch.distributed.all_gather_into_tensor(result, mine)
            else:  # Gloo of PyTorch 1.13 lacks that
                torch.distributed.all_gather(list(result.chunk(hvd.size())), mine)

        calls = {'to torch': gather, 'copied': copy, torch.distributed.get_backend(): by_peer}
        us = _queue(gpu, calls, 3, 10 if gpu.is_cuda else 2)
        findings.check(torch.equal(gather(), result) and torch.equal(copy(), result),
                       f'allgather of {size} bytes is right, copied and not')
        findings.figure(f'allgather of {size} bytes, {hvd.size()} rank(s), us of the host, on the '
                        'stream: ' + '; '.join(f'{name} {host:.1f}, {stream:.1f}'
                                               for name, (host, stream) in us.items()))
    torch.distributed.destroy_process_group()


PARTS = (gathers,)
