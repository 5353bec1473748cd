# SPDX-License-Identifier: Apache-2.0
"""alltoall: sends a part of dimension 0 to each rank."""

import torch

from horovod.common import requests
from horovod.common.arguments import wrong_type
from horovod.common.process_sets import global_process_set, set_id
from horovod.torch.collectives import tensors as memory


def _counts(splits):
    """The list of row counts in splits: None, a sequence of ints or an int32 tensor."""
    if splits is None:
        return None
    if not isinstance(splits, torch.Tensor):
        try:
            splits = torch.tensor(list(splits), dtype=torch.int32)
        except (TypeError, ValueError, RuntimeError) as error:
            raise wrong_type('splits', splits, 'whole numbers of rows, one for each rank, as a '
                             'list or an int32 tensor') from error
    if splits.dim() != 1:
        raise ValueError('alltoall expects a 1D splits tensor')
    if splits.dtype is not torch.int32:
        raise ValueError('alltoall expects splits to contain 32-bit integer elements.')
    return splits.tolist()


def alltoall_async(tensor, splits=None, name=None, process_set=global_process_set):
    """Starts to send splits[i] rows to rank i, or equal parts. Returns a handle whose result is the
    pair (received rows, how many rows came from each rank)."""
    source = memory.usable(tensor)
    counts = _counts(splits)
    device = tensor.device
    splits_device = splits.device if isinstance(splits, torch.Tensor) else 'cpu'

    def finish(request):
        received = request.received_splits(process_set.size())
        return (memory.adopt(request, 0, source, device),
                torch.tensor(received, dtype=torch.int32, device=splits_device))

    described = memory.describe(requests.tensor_name('alltoall', name, process_set), source)
    return requests.add(requests.alltoall(described, counts, set_id(process_set, 'Alltoall'),
                                          source, finish), memory.stream_of(source))


class HorovodAlltoall(torch.autograd.Function):
    """The gradient goes back to where the rows came from."""

    @staticmethod
    def forward(ctx, tensor, splits, name, process_set):
        output, received = requests.synchronize(
            alltoall_async(tensor, splits, name, process_set))
        ctx.received = received
        ctx.process_set = process_set
        ctx.mark_non_differentiable(received)
        return output, received

    @staticmethod
    def backward(ctx, gradient, _):
        returned, _ = HorovodAlltoall.apply(gradient, ctx.received, None, ctx.process_set)
        return returned, None, None, None


def alltoall(tensor, splits=None, name=None, process_set=global_process_set):
    """Sends splits[i] rows to rank i, or equal parts, and returns the received rows in rank order.
    With splits, also returns how many rows came from each rank. Differentiable."""
    memory.check(tensor)
    output, received = HorovodAlltoall.apply(tensor, splits, name, process_set)
    return output if splits is None else (output, received)
