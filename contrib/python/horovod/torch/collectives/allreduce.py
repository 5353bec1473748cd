# SPDX-License-Identifier: Apache-2.0
"""allreduce in all its forms: one tensor or a group, waited for or not, in place or not."""

import torch

from horovod.common import requests
from horovod.common.process_sets import global_process_set, set_id
from horovod.common.reductions import choose_op
from horovod.common.repeated import Repeated, take_idle
from horovod.torch.collectives import tensors as memory
from horovod.torch.compression import Compression


def _start(names, tensors, targets, op, scale, process_set, finish):
    """Submits one request that reduces tensors into targets, on one device."""
    described = [memory.describe(*each) for each in zip(names, tensors, targets)]
    return requests.add(requests.allreduce(
        described, op, scale, set_id(process_set, 'Allreduce'), (tensors, targets), finish),
        memory.stream_of(tensors[0]))


def _start_again(tensor, name, device, op, prescale, postscale, process_set):
    """What training loops do most, with little to do where the name's last tensor was alike. None:
    libhvd refuses it, and the long way will tell why."""
    settings = (op, prescale, postscale, process_set.process_set_id)
    likeness = (tensor.shape, tensor.dtype, device, settings)
    request = take_idle(name)
    if request is None or request.likeness != likeness:
        set_id(process_set, 'Allreduce')
        request = Repeated(name, likeness, tensor.shape, memory.number(tensor), settings,
                           (device, memory.stream_of(tensor)))
    return request.start(tensor, tensor.data_ptr())


def allreduce_async(tensor, average=None, name=None, op=None, prescale_factor=1.0,
                    postscale_factor=1.0, process_set=global_process_set):
    """Starts a reduction over all ranks into a new tensor; returns a handle."""
    op = choose_op(op, average)
    source = memory.usable(tensor)
    target = memory.empty(source, tensor.shape)
    names = [requests.tensor_name('allreduce', name, process_set)]
    return _start(names, [source], [target], op, (prescale_factor, postscale_factor), process_set,
                  lambda request: target.to(tensor.device))


def allreduce_async_(tensor, average=None, name=None, op=None, prescale_factor=1.0,
                     postscale_factor=1.0, process_set=global_process_set):
    """Starts a reduction over all ranks in place; returns a handle."""
    op = choose_op(op, average)
    if type(name) is str:
        device = memory.DEVICE_CPU if memory.is_host(tensor) else memory.gpu_of(tensor)
        handle = None if device is None else _start_again(
            tensor, name, device, op, prescale_factor, postscale_factor, process_set)
        if handle is not None:
            return handle
    staged = memory.usable(tensor)
    names = [requests.tensor_name('allreduce', name, process_set)]
    return _start(names, [staged], [staged], op, (prescale_factor, postscale_factor), process_set,
                  lambda request: memory.write_back(staged, tensor))


def allreduce_(tensor, average=None, name=None, op=None, prescale_factor=1.0,
               postscale_factor=1.0, process_set=global_process_set):
    """Reduces in place over all ranks; returns the tensor."""
    return requests.synchronize(allreduce_async_(
        tensor, None, name, choose_op(op, average), prescale_factor, postscale_factor,
        process_set))


class HorovodAllreduce(torch.autograd.Function):
    """The gradient is reduced as the tensor was."""

    @staticmethod
    def forward(ctx, tensor, name, op, prescale_factor, postscale_factor, process_set):
        ctx.reduction = (op, prescale_factor, postscale_factor, process_set)
        return requests.synchronize(allreduce_async(
            tensor, None, name, op, prescale_factor, postscale_factor, process_set))

    @staticmethod
    def backward(ctx, gradient):
        return (HorovodAllreduce.apply(gradient, None, *ctx.reduction),) + (None,) * 5


def allreduce(tensor, average=None, name=None, compression=Compression.none, op=None,
              prescale_factor=1.0, postscale_factor=1.0, process_set=global_process_set):
    """The reduction of the tensor over all ranks, in a new tensor; differentiable."""
    op = choose_op(op, average)
    compressed, ctx = compression.compress(tensor)
    reduced = HorovodAllreduce.apply(compressed, name, op, prescale_factor, postscale_factor,
                                     process_set)
    return compression.decompress(reduced, ctx)


def grouped_allreduce_async(tensors, average=None, name=None, op=None, prescale_factor=1.0,
                            postscale_factor=1.0, process_set=global_process_set):
    """Starts the reduction of several tensors as one; returns one handle."""
    op = choose_op(op, average)
    sources = memory.all_usable(tensors)
    targets = [memory.empty(source, source.shape) for source in sources]
    device = tensors[0].device
    names = requests.tensor_names('grouped_allreduce', name, len(tensors), process_set)
    return _start(names, sources, targets, op, (prescale_factor, postscale_factor), process_set,
                  lambda request: [target.to(device) for target in targets])


def grouped_allreduce_async_(tensors, average=None, name=None, op=None, prescale_factor=1.0,
                             postscale_factor=1.0, process_set=global_process_set):
    """Starts the reduction of several tensors as one, in place; returns one handle."""
    op = choose_op(op, average)
    tensors = list(tensors)
    staged = memory.all_usable(tensors)
    names = requests.tensor_names('grouped_allreduce', name, len(tensors), process_set)
    return _start(names, staged, staged, op, (prescale_factor, postscale_factor), process_set,
                  lambda request: [memory.write_back(*pair) for pair in zip(staged, tensors)])


def grouped_allreduce_(tensors, average=None, name=None, op=None, prescale_factor=1.0,
                       postscale_factor=1.0, process_set=global_process_set):
    """Reduces several tensors in place as one; returns them."""
    return requests.synchronize(grouped_allreduce_async_(
        tensors, None, name, choose_op(op, average), prescale_factor, postscale_factor,
        process_set))


class HorovodGroupedAllreduce(torch.autograd.Function):
    """The gradients are reduced as the tensors were, as one group."""

    @staticmethod
    def forward(ctx, name, op, prescale_factor, postscale_factor, process_set, *tensors):
        ctx.reduction = (op, prescale_factor, postscale_factor, process_set)
        return tuple(requests.synchronize(grouped_allreduce_async(
            tensors, None, name, op, prescale_factor, postscale_factor, process_set)))

    @staticmethod
    def backward(ctx, *gradients):
        reduced = HorovodGroupedAllreduce.apply(None, *ctx.reduction, *gradients)
        return (None,) * 5 + tuple(reduced)


def grouped_allreduce(tensors, average=None, name=None, compression=Compression.none, op=None,
                      prescale_factor=1.0, postscale_factor=1.0,
                      process_set=global_process_set):
    """The reductions of several tensors, done as one; differentiable."""
    op = choose_op(op, average)
    compressed, contexts = zip(*map(compression.compress, tensors)) if tensors else ((), ())
    reduced = HorovodGroupedAllreduce.apply(name, op, prescale_factor, postscale_factor,
                                            process_set, *compressed)
    return [compression.decompress(*each) for each in zip(reduced, contexts)]
