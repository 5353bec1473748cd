# SPDX-License-Identifier: Apache-2.0
"""allgather: concatenates the tensors of all ranks along dimension 0."""

import torch

from horovod.common import requests
from horovod.common.basics import Average
from horovod.common.process_sets import global_process_set, set_id
from horovod.torch.collectives import tensors as memory
from horovod.torch.collectives.allreduce import grouped_allreduce


def _start(names, sources, device, process_set, finish):
    """``finish``: makes the caller's result from the list of gathered tensors."""
    number = set_id(process_set, 'Allgather')
    outputs = [memory.Gathered(source, device, 'allgather', number) for source in sources]
    described = [output.describe(name) for name, output in zip(names, outputs)]
    return requests.add(requests.allgather(
        described, number, [sources, [output.memory for output in outputs]],
        lambda request: finish([output.result(request, index)
                                for index, output in enumerate(outputs)])),
        memory.stream_of(sources[0]))


def allgather_async(tensor, name=None, process_set=global_process_set):
    """Starts an allgather; returns a handle for poll() and synchronize(). See allgather."""
    source = memory.usable(tensor)
    names = [requests.tensor_name('allgather', name, process_set)]
    return _start(names, [source], tensor.device, process_set, lambda results: results[0])


def grouped_allgather_async(tensors, name=None, process_set=global_process_set):
    """Starts an allgather of several tensors as one; returns one handle. See
    grouped_allgather."""
    tensors = memory.check_all(tensors)
    sources = memory.all_usable(tensors)
    names = requests.tensor_names('grouped_allgather', name, len(sources), process_set)
    return _start(names, sources, tensors[0].device, process_set, lambda results: results)


def _own_parts(gradients, rows, process_set):
    """Averages the gradients of gathered tensors over the ranks; returns this rank's rows."""
    averaged = grouped_allreduce(gradients, op=Average, process_set=process_set)
    counts = requests.synchronize(
        allgather_async(torch.tensor([rows]), process_set=process_set))
    starts = counts[:process_set.rank()].sum(0).tolist()
    return [each.narrow(0, start, count)
            for each, start, count in zip(averaged, starts, rows)]


class HorovodAllgather(torch.autograd.Function):
    """allgather for autograd. The gradient of a rank's tensor is the average over the ranks of the
    gradients of its rows."""

    @staticmethod
    def forward(ctx, tensor, name, process_set):
        ctx.rows = tensor.shape[:1]
        ctx.process_set = process_set
        return requests.synchronize(allgather_async(tensor, name, process_set))

    @staticmethod
    def backward(ctx, gradient):
        return _own_parts([gradient], list(ctx.rows), ctx.process_set)[0], None, None


class HorovodGroupedAllgather(torch.autograd.Function):
    """Like HorovodAllgather, for several tensors as one."""

    @staticmethod
    def forward(ctx, name, process_set, *tensors):
        ctx.rows = [tensor.shape[:1] for tensor in tensors]
        ctx.process_set = process_set
        return tuple(requests.synchronize(grouped_allgather_async(tensors, name, process_set)))

    @staticmethod
    def backward(ctx, *gradients):
        rows = [count for (count,) in ctx.rows]
        return (None, None, *_own_parts(gradients, rows, ctx.process_set))


def allgather(tensor, name=None, process_set=global_process_set):
    """Returns the tensors of all ranks, concatenated along dimension 0 in rank order.

    tensor: has at least one dimension. Ranks may differ in dimension 0, but not in the other
        dimensions or the dtype. Differentiable.
    name: the ranks match tensors by name. Without a name they match unnamed tensors by the order
        of the calls.
    process_set: the ranks that take part; all of them must call this.

    Raises HorovodInternalError if the ranks' tensors do not match or a rank has died.
    """
    memory.check(tensor)
    return HorovodAllgather.apply(tensor, name, process_set)


def grouped_allgather(tensors, name=None, process_set=global_process_set):
    """Like allgather for a list of tensors on one device, gathered as one; returns a list.
    Differentiable."""
    return list(HorovodGroupedAllgather.apply(name, process_set, *memory.check_all(tensors)))
