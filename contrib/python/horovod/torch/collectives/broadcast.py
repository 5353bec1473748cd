# SPDX-License-Identifier: Apache-2.0
"""broadcast: gives every rank the tensor of one rank."""

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
    """Starts to broadcast into a new tensor; returns a handle. root_rank is a global rank."""
    source = memory.usable(tensor)
    target = memory.empty(source, tensor.shape)
    device = tensor.device
    return _start(name, source, target, root_rank, process_set,
                  lambda request: target.to(device))


def broadcast_async_(tensor, root_rank, name=None, process_set=global_process_set):
    """Starts to broadcast in place; returns a handle. root_rank is a global rank."""
    staged = memory.usable(tensor)
    return _start(name, staged, staged, root_rank, process_set,
                  lambda request: memory.write_back(staged, tensor))


def broadcast_(tensor, root_rank, name=None, process_set=global_process_set):
    """Broadcasts in place; returns the tensor."""
    return requests.synchronize(broadcast_async_(tensor, root_rank, name, process_set))


class HorovodBroadcast(torch.autograd.Function):
    """The root's gradient is the average over ranks; the others have none."""

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
    """The tensor of the global rank root_rank, in a new tensor; differentiable."""
    return HorovodBroadcast.apply(tensor, root_rank, name, process_set)
