# SPDX-License-Identifier: Apache-2.0
"""reducescatter: reduces a tensor over the ranks and gives each rank a part of dimension 0."""

import torch

from horovod.common import requests
from horovod.common.arguments import check_compression
from horovod.common.basics import Average, Sum
from horovod.common.process_sets import global_process_set, set_id
from horovod.common.reductions import choose_scatter_op, scattered_shape
from horovod.torch.collectives import tensors as memory
from horovod.torch.collectives.allgather import grouped_allgather
from horovod.torch.compression import Compression


def _start(names, sources, op, scale, process_set, finish):
    """Submits one request; returns its handle. ``finish`` gets the list of this rank's parts, on
    the device of the sources."""
    identity = set_id(process_set, 'Reducescatter')
    op = choose_scatter_op(op)
    targets = [memory.empty(source, scattered_shape(source.shape, process_set))
               for source in sources]
    described = [memory.describe(*each) for each in zip(names, sources, targets)]
    return requests.add(requests.reducescatter(described, op, scale, identity,
                                               (sources, targets),
                                               lambda request: finish(targets)),
                        memory.stream_of(sources[0]))


def reducescatter_async(tensor, name=None, op=Average, process_set=global_process_set,
                        prescale_factor=1.0, postscale_factor=1.0):
    """Starts a reducescatter; returns a handle for poll() and synchronize(), whose result is this
    rank's part. See reducescatter for the arguments."""
    memory.check(tensor)
    device = tensor.device
    names = [requests.tensor_name('reducescatter', name, process_set)]
    source = memory.usable(tensor)
    return _start(names, [source], op, (prescale_factor, postscale_factor), process_set,
                  lambda parts: parts[0].to(device))


def grouped_reducescatter_async(tensors, name=None, op=Average, process_set=global_process_set,
                                prescale_factor=1.0, postscale_factor=1.0):
    """Starts a reducescatter of several tensors as one; returns one handle, whose result is the
    list of this rank's parts. See reducescatter for the arguments."""
    tensors = memory.check_all(tensors)
    sources = memory.all_usable(tensors)
    device = tensors[0].device
    names = requests.tensor_names('grouped_reducescatter', name, len(sources), process_set)
    return _start(names, sources, op, (prescale_factor, postscale_factor), process_set,
                  lambda parts: [part.to(device) for part in parts])


def _gradients(gradients, op, scale, process_set):
    """Gathers the gradients of the parts, scaled as in the forward pass. With Sum they are also
    multiplied by the number of ranks, as in Horovod."""
    factor = scale[0] * scale[1] * (process_set.size() if op == Sum else 1)
    scaled = gradients if factor == 1 else [gradient * factor for gradient in gradients]
    return grouped_allgather(scaled, process_set=process_set)


class HorovodReducescatter(torch.autograd.Function):
    """reducescatter for autograd. The gradient is gathered from the ranks, and with Sum multiplied
    by their number."""

    @staticmethod
    def forward(ctx, tensor, name, op, process_set, *scale):
        ctx.reduction = (op, scale, process_set)
        return requests.synchronize(reducescatter_async(tensor, name, op, process_set, *scale))

    @staticmethod
    def backward(ctx, gradient):
        return (_gradients([gradient], *ctx.reduction)[0],) + (None,) * 5


class HorovodGroupedReducescatter(torch.autograd.Function):
    """Like HorovodReducescatter, for several tensors as one."""

    @staticmethod
    def forward(ctx, name, op, process_set, scale, *tensors):
        ctx.reduction = (op, scale, process_set)
        return tuple(requests.synchronize(
            grouped_reducescatter_async(tensors, name, op, process_set, *scale)))

    @staticmethod
    def backward(ctx, *gradients):
        return (None,) * 4 + tuple(_gradients(gradients, *ctx.reduction))


def reducescatter(tensor, name=None, compression=Compression.none, op=Average,
                  process_set=global_process_set, prescale_factor=1.0, postscale_factor=1.0):
    """Reduces the tensor over all ranks and returns this rank's part of dimension 0.

    tensor: the same shape and dtype on all ranks, with at least one dimension. Rank i of N gets
        rows // N rows, and the first rows % N ranks get one more. Differentiable.
    name: the ranks match tensors by name. Without a name they match unnamed tensors by the order
        of the calls.
    compression: a member of hvd.Compression: the type in which the tensor travels.
    op: Average (the default) or Sum; HorovodInternalError otherwise.
    process_set: the ranks that take part; all of them must call this.
    prescale_factor, postscale_factor: multiply the tensor before and after the reduction.
    """
    memory.check(tensor)
    check_compression(compression)
    compressed, ctx = compression.compress(tensor)
    part = HorovodReducescatter.apply(compressed, name, op, process_set, prescale_factor,
                                      postscale_factor)
    return compression.decompress(part, ctx)


def grouped_reducescatter(tensors, name=None, compression=Compression.none, op=Average,
                          process_set=global_process_set, prescale_factor=1.0,
                          postscale_factor=1.0):
    """Like reducescatter for a list of tensors, reduced as one; returns the list of this rank's
    parts. Differentiable."""
    tensors = memory.check_all(tensors)
    check_compression(compression)
    compressed, contexts = zip(*map(compression.compress, tensors)) if tensors else ((), ())
    parts = HorovodGroupedReducescatter.apply(
        name, op, process_set, (prescale_factor, postscale_factor), *compressed)
    return [compression.decompress(*each) for each in zip(parts, contexts)]
