# SPDX-License-Identifier: Apache-2.0
"""alltoall: each rank sends a part of dimension 0 to every rank."""

import torch

from horovod.common import requests
from horovod.common.arguments import wrong_type
from horovod.common.process_sets import global_process_set, set_id
from horovod.torch.collectives import tensors as memory


def _counts(splits):
    """Returns splits as a list of row counts, or None. TypeError or ValueError unless it is None, a
    sequence of ints or an int32 tensor of one dimension."""
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
    """Starts an alltoall. Returns a handle whose result is the pair (received rows, how many rows
    came from each rank as an int32 tensor). See alltoall for the arguments."""
    source = memory.usable(tensor)
    counts = _counts(splits)
    splits_device = splits.device if isinstance(splits, torch.Tensor) else 'cpu'

    def finish(request):
        received = request.received_splits(process_set.size())
        return (output.result(request, 0),
                torch.tensor(received, dtype=torch.int32, device=splits_device))

    name = requests.tensor_name('alltoall', name, process_set)
    number = set_id(process_set, 'Alltoall')
    output = memory.Gathered(source, tensor.device, 'alltoall', number)
    described = output.describe(name)
    return requests.add(requests.alltoall(described, counts, number, [source, output.memory],
                                          finish), memory.stream_of(source))


class HorovodAlltoall(torch.autograd.Function):
    """alltoall for autograd. The gradients of rows return to the ranks that sent the rows."""

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
    """Sends a part of dimension 0 to each rank; returns the received rows in rank order.

    tensor: has at least one dimension; all dimensions but the first are equal on all ranks.
        Differentiable.
    splits: how many rows go to each rank, as a list or an int32 tensor. None: equal parts; the
        number of rows must be divisible by the number of ranks.
    name: the ranks match tensors by name. Without a name they match unnamed tensors by the order
        of the calls.
    process_set: the ranks that take part; all of them must call this.

    With splits, returns (received rows, how many rows came from each rank as an int32 tensor).
    """
    memory.check(tensor)
    output, received = HorovodAlltoall.apply(tensor, splits, name, process_set)
    return output if splits is None else (output, received)
