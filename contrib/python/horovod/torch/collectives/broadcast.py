# SPDX-License-Identifier: Apache-2.0
"""broadcast: copies the tensor of one rank to all ranks."""

import torch

from horovod.common import requests
from horovod.common.basics import Average, basics
from horovod.common.process_sets import global_process_set, set_id
from horovod.torch.collectives import tensors as memory
from horovod.torch.collectives.allreduce import allreduce


def _start(name, source, target, root_rank, process_set, finish):
    name = requests.tensor_name('broadcast', name, process_set)
    return requests.add(requests.broadcast(
        memory.describe(name, source, target), root_rank, set_id(process_set, 'Broadcast'),
        (source, target), finish), memory.stream_of(source))


def broadcast_async(tensor, root_rank, name=None, process_set=global_process_set):
    """Starts a broadcast into a new tensor; returns a handle for poll() and synchronize(), whose
    result is that tensor. See broadcast for the arguments."""
    source = memory.usable(tensor)
    target = memory.empty(source, tensor.shape)
    device = tensor.device
    return _start(name, source, target, root_rank, process_set,
                  lambda request: target.to(device))


def broadcast_async_(tensor, root_rank, name=None, process_set=global_process_set):
    """Starts a broadcast in place; returns a handle for poll() and synchronize(). See broadcast for
    the arguments."""
    staged = memory.usable(tensor)
    return _start(name, staged, staged, root_rank, process_set,
                  lambda request: memory.write_back(staged, tensor))


def broadcast_(tensor, root_rank, name=None, process_set=global_process_set):
    """Overwrites the tensor with the root's, in place; returns it. See broadcast for the
    arguments."""
    return requests.synchronize(broadcast_async_(tensor, root_rank, name, process_set))


class HorovodBroadcast(torch.autograd.Function):
    """broadcast for autograd. The root's gradient is the average over the ranks; that of the other
    ranks is zero."""

    @staticmethod
    def forward(ctx, tensor, root_rank, name, process_set):
        ctx.root_rank = root_rank
        ctx.process_set = process_set
        return requests.synchronize(broadcast_async(tensor, root_rank, name, process_set))

    @staticmethod
    def backward(ctx, gradient):
        averaged = allreduce(gradient, op=Average, process_set=ctx.process_set)
        if basics.rank() != ctx.root_rank:
            averaged = torch.zeros_like(averaged)
        return averaged, None, None, None


def broadcast(tensor, root_rank, name=None, process_set=global_process_set):
    """Returns the tensor of rank root_rank, as a new tensor. Differentiable.

    tensor: the same shape and dtype on all ranks.
    root_rank: a rank of the job, also if process_set has only some of its ranks.
    name: the ranks match tensors by name. Without a name they match unnamed tensors by the order
        of the calls.
    process_set: the ranks that take part; all of them must call this.
    """
    return HorovodBroadcast.apply(tensor, root_rank, name, process_set)
