#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains in mixed precision: passes in 16-bit floats, parameters and steps in 32-bit floats.

    srun --hvd python3 mixed_precision.py --dtype float16 --loss-scale dynamic

float16 cannot represent small gradients, so the loss is multiplied by a scale, and the gradients
are divided by it before the step. With --loss-scale dynamic, torch's GradScaler chooses the scale,
and skips steps whose gradients are not finite. With --loss-scale NUMBER the scale is constant, and
the script skips such steps without a GradScaler. In both cases all ranks check the reduced
gradients, so either all ranks skip a step or none does. bfloat16 has the range of float32 and needs
no scale, but a scale does no harm.
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
                        help='type of the passes; None: float16 on a GPU, bfloat16 on a CPU')
    parser.add_argument('--loss-scale', default='dynamic', metavar='dynamic|NUMBER',
                        help='factor of the loss; dynamic: GradScaler chooses it')
    parser.add_argument('--fp16-allreduce', action='store_true',
                        help='send the scaled gradients in half precision')
    parser.add_argument('--sync-batch-norm', action='store_true',
                        help='normalise over the batches of all ranks')
    parser.add_argument('--images', type=int, default=2048, help='number of generated images')
    parser.add_argument('--image-size', type=int, default=64, help='side of generated images')
    parser.add_argument('--model', default='resnet50',
                        help='a network of networks.py or torchvision')
    parser.add_argument('--epochs', type=int, default=10)
    parser.add_argument('--batch-size', type=int, default=32, help='images per rank and step')
    parser.add_argument('--lr', type=float, default=0.0125, help='learning rate for one rank')
    parser.add_argument('--seed', type=int, default=42)
    parser.add_argument('--no-cuda', action='store_true', help='train on the CPU')
    return parser.parse_args()


class DynamicScale:
    """Uses torch's GradScaler, which works with hvd's optimizer as it is."""

    def __init__(self, device):
        if hasattr(torch.amp, 'GradScaler'):
            self._scaler = torch.amp.GradScaler(device.type)
        else:  # the GradScaler of torch < 2.3 supports GPUs only: disable it on CPUs
            self._scaler = torch.cuda.amp.GradScaler(enabled=device.type == 'cuda')

    def step(self, loss, optimizer):
        """Runs the backward pass and takes the step."""
        self._scaler.scale(loss).backward()
        self._scaler.step(optimizer)
        self._scaler.update()

    def __str__(self):
        return f'{self._scaler.get_scale():g}'


class StaticScale:
    """Uses the same scale in every step, and counts the steps that it skips."""

    def __init__(self, scale):
        self._scale, self._left_out = scale, 0

    def step(self, loss, optimizer):
        """Runs the backward pass, and takes the step if the gradients are finite."""
        (loss * self._scale).backward()
        optimizer.synchronize()  # waits until the gradients are averaged over the ranks
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
        return f'{self._scale:g}, skipped steps: {self._left_out}'


def passes_in(dtype, device):
    """Returns a context manager that computes the forward pass in this type."""
    if dtype is torch.float32:
        return contextlib.nullcontext()
    return torch.autocast(device.type, dtype)


def train(model, optimizer, scale, loader, dtype, device):
    """Trains one epoch; returns the mean loss over all ranks."""
    model.train()
    total = torch.zeros(2, device=device)
    for images, labels in loader:
        optimizer.zero_grad()
        with passes_in(dtype, device):
            outputs = model(images.to(device))
        loss = F.cross_entropy(outputs.float(), labels.to(device))
        scale.step(loss, optimizer)
        # Add up on the device: loss.item() would wait for the GPU in each step.
        total += torch.stack([loss.detach(), torch.ones_like(loss)])
    loss, count = hvd.allreduce(total, op=hvd.Sum, name='losses').tolist()
    return loss / count


def are_same(model):
    """Whether all ranks have exactly the same parameters."""
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
