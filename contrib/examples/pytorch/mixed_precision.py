#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains in mixed precision: passes in 16-bit floats, parameters and steps in 32.

    srun --hvd python3 mixed_precision.py --dtype float16 --loss-scale dynamic

float16 cannot represent small gradients, so the loss is scaled up, and the gradients are scaled down
before the step. --loss-scale dynamic: torch's GradScaler finds a scale, and skips a step whose
gradients are not finite. --loss-scale NUMBER: this scale, without a GradScaler. With both, all ranks
see the same gradients, so all of them skip a step or none. bfloat16 has the range of float32 and
needs no scale; a scale does no harm.
"""

import argparse
import contextlib

import torch
import torch.nn.functional as F

import devices
import horovod.torch as hvd
import imagenet
import networks
from devices import say


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0],
                                     formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument('--dtype', choices=('float16', 'bfloat16', 'float32'),
                        help='of the passes; None: float16 on a GPU, bfloat16 on a CPU')
    parser.add_argument('--loss-scale', default='dynamic', metavar='dynamic|NUMBER')
    parser.add_argument('--fp16-allreduce', action='store_true',
                        help='gradients travel as float16, scaled')
    parser.add_argument('--sync-batch-norm', action='store_true')
    parser.add_argument('--images', type=int, default=2048, help='number of generated images')
    parser.add_argument('--image-size', type=int, default=64)
    parser.add_argument('--model', default='resnet50')
    parser.add_argument('--epochs', type=int, default=10)
    parser.add_argument('--batch-size', type=int, default=32, help='images per rank and step')
    parser.add_argument('--lr', type=float, default=0.0125, help='of one rank')
    parser.add_argument('--seed', type=int, default=42)
    parser.add_argument('--no-cuda', action='store_true')
    return parser.parse_args()


class DynamicScale:
    """torch's GradScaler, which hvd's optimizer supports without further calls."""

    def __init__(self, device):
        if hasattr(torch.amp, 'GradScaler'):
            self._scaler = torch.amp.GradScaler(device.type)
        else:  # torch < 2.3 has one for GPUs only; on CPUs it does nothing
            self._scaler = torch.cuda.amp.GradScaler(enabled=device.type == 'cuda')

    def step(self, loss, optimizer):
        """Backward and step."""
        self._scaler.scale(loss).backward()
        self._scaler.step(optimizer)
        self._scaler.update()

    def __str__(self):
        return f'{self._scaler.get_scale():g}'


class StaticScale:
    """The same scale in every step; counts the skipped steps."""

    def __init__(self, scale):
        self._scale, self._left_out = scale, 0

    def step(self, loss, optimizer):
        """Backward and step."""
        (loss * self._scale).backward()
        optimizer.synchronize()  # from here on the gradients are averaged
        gradients = [parameter.grad for group in optimizer.param_groups
                     for parameter in group['params'] if parameter.grad is not None]
        for gradient in gradients:
            gradient.div_(self._scale)
        if torch.stack([gradient.isfinite().all() for gradient in gradients]).all():
            with optimizer.skip_synchronize():
                optimizer.step()
        else:
            self._left_out += 1

    def __str__(self):
        return f'{self._scale:g}, steps left out: {self._left_out}'


def passes_in(dtype, device):
    """The context of the forward pass."""
    if dtype is torch.float32:
        return contextlib.nullcontext()
    return torch.autocast(device.type, dtype)


def train(model, optimizer, scale, loader, dtype, device):
    """One epoch; the mean loss over all ranks."""
    model.train()
    total = torch.zeros(2, device=device)
    for images, labels in loader:
        optimizer.zero_grad()
        with passes_in(dtype, device):
            outputs = model(images.to(device))
        loss = F.cross_entropy(outputs.float(), labels.to(device))
        scale.step(loss, optimizer)
        total += torch.stack([loss.detach(), torch.ones_like(loss)])  # not read: a GPU does not wait
    loss, count = hvd.allreduce(total, op=hvd.Sum, name='losses').tolist()
    return loss / count


def are_same(model):
    """Whether all ranks have the same parameters, bit by bit."""
    mine = torch.cat([parameter.detach().flatten() for parameter in model.parameters()])
    return all(torch.equal(other, mine) for other in hvd.allgather(mine[None], name='parameters'))


def main():
    arguments = parse_arguments()
    hvd.init()
    torch.manual_seed(arguments.seed)
    device = devices.choose(not arguments.no_cuda)
    dtype = arguments.dtype or ('float16' if device.type == 'cuda' else 'bfloat16')
    model = networks.by_name(arguments.model, classes=10)
    if arguments.sync_batch_norm:
        model = imagenet.with_shared_statistics(model)
    model.to(device)
    optimizer = hvd.DistributedOptimizer(
        torch.optim.SGD(model.parameters(), lr=arguments.lr * hvd.size(), momentum=0.9),
        named_parameters=model.named_parameters(),
        compression=hvd.Compression.fp16 if arguments.fp16_allreduce else hvd.Compression.none)
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    scale = (DynamicScale(device) if arguments.loss_scale == 'dynamic'
             else StaticScale(float(arguments.loss_scale)))
    loader = imagenet.loader_of(imagenet.generated(arguments.images, arguments.image_size),
                                arguments, True)
    say(f'{dtype} on {hvd.size()} {device.type} rank(s)')
    for epoch in range(arguments.epochs):
        loader.sampler.set_epoch(epoch)
        loss = train(model, optimizer, scale, loader, getattr(torch, dtype), device)
        say(f'epoch {epoch + 1:3d}  loss {loss:.4f}  scale {scale}')
    say(f'parameters are {"the same" if are_same(model) else "DIFFERENT"} on all ranks')


if __name__ == '__main__':
    main()
