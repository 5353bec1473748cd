#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains the network of ddp.py with FSDP2.

Each rank keeps a part of the parameters and of the optimizer's state. FSDP2 needs PyTorch 2.6 or
newer. Start it like ddp.py: alone, or with hvdrun, srun --hvd or torchrun. A checkpoint is a
directory to which each rank writes its part; any number of ranks can read it.
"""

import os
import time

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as checkpoint
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

from ddp import Net, accuracy, divide, join_job, load_images, parse_arguments, report, train_epoch


def shard(net, device):
    """Divides the parameters among the ranks. Each layer is a group of parameters, which FSDP
    gathers when the layer needs them."""
    mesh = init_device_mesh(device.type, (dist.get_world_size(),))
    for layer in net.children():
        fully_shard(layer, mesh=mesh)
    return fully_shard(net, mesh=mesh)


def state_of(model, optimizer, epoch):
    parameters, moments = get_state_dict(model, optimizer)
    return {'model': parameters, 'optimizer': moments, 'epoch': epoch}


def last_checkpoint(directory):
    """Returns the epoch of the last complete checkpoint, or 0 if there is none. Rank 0 looks for it
    and tells the other ranks."""
    found = [0]
    if dist.get_rank() == 0 and directory and os.path.isdir(directory):
        found += [int(name) for name in os.listdir(directory)
                  if os.path.exists(os.path.join(directory, name, '.metadata'))]
    last = [max(found)]
    dist.broadcast_object_list(last)
    return last[0]


def resume(directory, model, optimizer):
    """Loads the last complete checkpoint, if there is one; returns the first epoch to train."""
    epoch = last_checkpoint(directory)
    if epoch > 0:
        state = state_of(model, optimizer, epoch)
        checkpoint.load(state, checkpoint_id=os.path.join(directory, str(epoch)))
        set_state_dict(model, optimizer, model_state_dict=state['model'],
                       optim_state_dict=state['optimizer'])
    return epoch


def count(number, noun):
    """Returns such as "1 node" or "2 nodes"."""
    return f'{number} {noun}' + ('' if number == 1 else 's')


def main():
    arguments = parse_arguments(__doc__)
    device = join_job(arguments.backend)
    size, is_first = dist.get_world_size(), dist.get_rank() == 0
    torch.manual_seed(arguments.seed)
    dtype = torch.float64 if arguments.float64 else torch.float32
    train_set, held_out = load_images(dtype)

    sampler, loader = divide(train_set, arguments)
    model = shard(Net().to(device, dtype), device)
    optimizer = torch.optim.SGD(model.parameters(), arguments.lr * size, momentum=0.9)
    begin = resume(arguments.checkpoint, model, optimizer)
    if is_first:
        own = sum(each.to_local().numel() for each in model.parameters())
        everything = sum(each.numel() for each in model.parameters())
        print(f'{count(size, "rank")}, {device.type}, backend {dist.get_backend()}; '
              f'rank 0 keeps {own} of '
              f'{everything} parameters', flush=True)

    for epoch in range(begin, arguments.epochs):
        sampler.set_epoch(epoch)
        started = time.perf_counter()
        loss = train_epoch(model, optimizer, loader, device)
        speed = len(loader) * arguments.batch_size * size / (time.perf_counter() - started)
        share = accuracy(model, held_out, device)
        if is_first:
            report(arguments.log, epoch=epoch + 1, loss=loss, accuracy=share,
                   images_per_second=speed, ranks=size)
        if arguments.checkpoint:
            checkpoint.save(state_of(model, optimizer, epoch + 1),
                            checkpoint_id=os.path.join(arguments.checkpoint, str(epoch + 1)))
    dist.destroy_process_group()


if __name__ == '__main__':
    main()
