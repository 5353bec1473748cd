# SPDX-License-Identifier: Apache-2.0
"""allreduce of one tensor or of a group, synchronous or asynchronous, in place or not.

``wire`` is the number of the dtype to which libhvd casts a float32 tensor while it travels, or 0.
"""

import torch

from horovod.common import requests
from horovod.common.arguments import check_set
from horovod.common.process_sets import global_process_set, set_id
from horovod.common.reductions import choose_op
from horovod.common.repeated import Repeated, take_idle
from horovod.torch.collectives import tensors as memory
from horovod.torch.compression import Compression, prepare, prepare_all


def _start(members, op, scale, process_set, finish):
    """Submits one request; returns its handle. ``members``: (name, source, target, wire) for each
    tensor, all on one device."""
    described = [memory.describe(*each) for each in members]
    return requests.add(requests.allreduce(
        described, op, scale, set_id(process_set, 'Allreduce'), members, finish),
        memory.stream_of(members[0][1]))


def _start_again(tensor, wire, name, device, op, prescale, postscale, process_set):
    """The fast path of training loops: if the last tensor of this name had the same shape, dtype,
    device and settings, its description is used again. Returns a handle, or None if libhvd rejects
    the tensor; the slow path then reports the reason."""
    settings = (op, prescale, postscale, process_set.process_set_id, wire)
    likeness = (tensor.shape, tensor.dtype, device, settings)
    request = take_idle(name)
    if request is None or request.likeness != likeness:
        set_id(process_set, 'Allreduce')
        request = Repeated(name, likeness, tensor.shape, memory.number(tensor), settings,
                           (device, memory.stream_of(tensor)))
    return request.start(tensor, tensor.data_ptr())


def _start_apart(tensor, wire, name, op, prescale, postscale, process_set):
    source = memory.usable(tensor)
    target = memory.empty(source, tensor.shape)
    name = requests.tensor_name('allreduce', name, process_set)
    return _start([(name, source, target, wire)], op, (prescale, postscale), process_set,
                  lambda request: target.to(tensor.device))


def start_in_place(tensor, wire, name, op, prescale, postscale, process_set):
    """Starts an allreduce of the tensor in place; returns a handle."""
    if type(name) is str:
        device = memory.DEVICE_CPU if memory.is_host(tensor) else memory.gpu_of(tensor)
        handle = None if device is None else _start_again(
            tensor, wire, name, device, op, prescale, postscale, process_set)
        if handle is not None:
            return handle
    staged = memory.usable(tensor)
    name = requests.tensor_name('allreduce', name, process_set)
    return _start([(name, staged, staged, wire)], op, (prescale, postscale), process_set,
                  lambda request: memory.write_back(staged, tensor))


def allreduce_async(tensor, average=None, name=None, op=None, prescale_factor=1.0,
                    postscale_factor=1.0, process_set=global_process_set):
    """Starts an allreduce into a new tensor; returns a handle for poll() and synchronize(), whose
    result is that tensor. Do not change ``tensor`` until then. See allreduce for the arguments."""
    return _start_apart(tensor, 0, name, choose_op(op, average), prescale_factor,
                        postscale_factor, process_set)


def allreduce_async_(tensor, average=None, name=None, op=None, prescale_factor=1.0,
                     postscale_factor=1.0, process_set=global_process_set):
    """Starts an allreduce in place; returns a handle for poll() and synchronize(). Do not use
    ``tensor`` until then. See allreduce for the arguments."""
    memory.check(tensor)
    check_set(process_set)
    return start_in_place(tensor, 0, name, choose_op(op, average), prescale_factor,
                          postscale_factor, process_set)


def allreduce_(tensor, average=None, name=None, op=None, prescale_factor=1.0,
               postscale_factor=1.0, process_set=global_process_set):
    """Reduces the tensor over all ranks in place; returns it. See allreduce for the arguments."""
    return requests.synchronize(allreduce_async_(
        tensor, None, name, choose_op(op, average), prescale_factor, postscale_factor,
        process_set))


class HorovodAllreduce(torch.autograd.Function):
    """allreduce for autograd. The gradient is reduced in the same way as the tensor."""

    @staticmethod
    def forward(ctx, tensor, wire, name, *reduction):
        ctx.wire, ctx.reduction = wire, reduction
        return requests.synchronize(_start_apart(tensor, wire, name, *reduction))

    @staticmethod
    def backward(ctx, gradient):
        return (HorovodAllreduce.apply(gradient, ctx.wire, None, *ctx.reduction),) + (None,) * 6


def allreduce(tensor, average=None, name=None, compression=Compression.none, op=None,
              prescale_factor=1.0, postscale_factor=1.0, process_set=global_process_set):
    """Returns the reduction of the tensor over all ranks, as a new tensor. Differentiable.

    tensor: the same shape and dtype on all ranks.
    average: deprecated; use op.
    name: the ranks match tensors by name. Without a name they match unnamed tensors by the order
        of the calls.
    compression: a member of hvd.Compression: the type in which the tensor travels.
    op: Average (the default), Sum, Min, Max, Product or Adasum.
    prescale_factor, postscale_factor: multiply the tensor before and after the reduction.
    process_set: the ranks that take part; all of them must call this.

    Raises HorovodInternalError if the ranks' tensors do not match or a rank has died.
    """
    memory.check(tensor)
    op = choose_op(op, average)
    compressed, wire, restore = prepare(compression, tensor, op)
    return restore(HorovodAllreduce.apply(compressed, wire, name, op, prescale_factor,
                                          postscale_factor, process_set))


def _start_group_apart(tensors, wires, name, op, prescale, postscale, process_set):
    sources = memory.all_usable(tensors)
    targets = [memory.empty(source, source.shape) for source in sources]
    device = tensors[0].device
    names = requests.tensor_names('grouped_allreduce', name, len(tensors), process_set)
    return _start(list(zip(names, sources, targets, wires)), op, (prescale, postscale),
                  process_set, lambda request: [target.to(device) for target in targets])


def start_group_in_place(tensors, wires, name, op, prescale, postscale, process_set):
    """Starts the allreduce of several tensors as one, in place; returns one handle."""
    staged = memory.all_usable(tensors)
    names = requests.tensor_names('grouped_allreduce', name, len(tensors), process_set)
    return _start(list(zip(names, staged, staged, wires)), op, (prescale, postscale), process_set,
                  lambda request: [memory.write_back(*pair) for pair in zip(staged, tensors)])


def grouped_allreduce_async(tensors, average=None, name=None, op=None, prescale_factor=1.0,
                            postscale_factor=1.0, process_set=global_process_set):
    """Starts the allreduce of several tensors as one, into new tensors; returns one handle, whose
    result is their list. See grouped_allreduce."""
    tensors = memory.check_all(tensors)
    return _start_group_apart(tensors, [0] * len(tensors), name, choose_op(op, average),
                              prescale_factor, postscale_factor, process_set)


def grouped_allreduce_async_(tensors, average=None, name=None, op=None, prescale_factor=1.0,
                             postscale_factor=1.0, process_set=global_process_set):
    """Starts the allreduce of several tensors as one, in place; returns one handle. See
    grouped_allreduce."""
    tensors = memory.check_all(tensors)
    return start_group_in_place(tensors, [0] * len(tensors), name, choose_op(op, average),
                                prescale_factor, postscale_factor, process_set)


def grouped_allreduce_(tensors, average=None, name=None, op=None, prescale_factor=1.0,
                       postscale_factor=1.0, process_set=global_process_set):
    """Reduces several tensors as one, in place; returns them as a list. See
    grouped_allreduce."""
    return requests.synchronize(grouped_allreduce_async_(
        tensors, None, name, choose_op(op, average), prescale_factor, postscale_factor,
        process_set))


class HorovodGroupedAllreduce(torch.autograd.Function):
    """Like HorovodAllreduce, for several tensors as one. The gradients are one group, too."""

    @staticmethod
    def forward(ctx, wires, name, reduction, *tensors):
        ctx.wires, ctx.reduction = wires, reduction
        return tuple(requests.synchronize(_start_group_apart(tensors, wires, name, *reduction)))

    @staticmethod
    def backward(ctx, *gradients):
        reduced = HorovodGroupedAllreduce.apply(ctx.wires, None, ctx.reduction, *gradients)
        return (None,) * 3 + tuple(reduced)


def grouped_allreduce(tensors, average=None, name=None, compression=Compression.none, op=None,
                      prescale_factor=1.0, postscale_factor=1.0,
                      process_set=global_process_set):
    """Like allreduce for a list of tensors, reduced as one: none of them starts before the ranks
    have submitted all. Returns a list. Differentiable. HorovodInternalError if the tensors are on
    different devices."""
    op = choose_op(op, average)
    tensors = memory.check_all(tensors)
    compressed, wires, restores = prepare_all(compression, tensors, op)
    reduction = (op, prescale_factor, postscale_factor, process_set)
    reduced = HorovodGroupedAllreduce.apply(wires, name, reduction, *compressed)
    return [restore(each) for restore, each in zip(restores, reduced)]
