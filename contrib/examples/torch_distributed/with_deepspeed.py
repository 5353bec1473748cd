#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains the network of ddp.py with DeepSpeed's ZeRO.

Each rank keeps only a part of the optimizer's state. With stage 2 it also keeps only a part of the
gradients, and with stage 3 only a part of the parameters, too.

Start it with hvdrun, srun --hvd or torchrun; the command `deepspeed` is not needed. In its first
run on CPUs, DeepSpeed compiles an extension, which takes a minute and needs g++ and the package
ninja.
"""

import argparse
import os

import torch
import torch.distributed as dist
import torch.nn.functional as F

os.environ.setdefault('DS_ACCELERATOR', 'cpu')  # DeepSpeed reads this variable on import

import deepspeed  # noqa: E402

from ddp import Net, accuracy, divide, join_job, load_images  # noqa: E402


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--backend', choices=['hvd', 'gloo'], default='hvd')
    parser.add_argument('--stage', type=int, choices=[1, 2, 3], default=2, help='stage of ZeRO')
    parser.add_argument('--batch-size', type=int, default=16, help='images per rank and step')
    parser.add_argument('--seed', type=int, default=1)
    return parser.parse_args()


def configuration(arguments):
    """Returns DeepSpeed's configuration. Without the last two settings, DeepSpeed accepts only its
    own optimizers."""
    return {'train_micro_batch_size_per_gpu': arguments.batch_size,
            'zero_optimization': {'stage': arguments.stage},
            'zero_allow_untested_optimizer': True,
            'zero_force_ds_cpu_optimizer': False}


def train_epoch(engine, loader):
    """Trains on this rank's images once; returns the mean loss over all ranks."""
    engine.train()
    total = torch.zeros((), dtype=torch.float64)
    for images, labels in loader:
        loss = F.cross_entropy(engine(images), labels)
        engine.backward(loss)
        engine.step()
        total += loss.detach()
    dist.all_reduce(total)
    return total.item() / len(loader) / dist.get_world_size()


def main():
    arguments = parse_arguments()
    join_job(arguments.backend)
    deepspeed.init_distributed(dist_backend=arguments.backend)
    torch.manual_seed(arguments.seed)
    train_set, held_out = load_images()
    sampler, loader = divide(train_set, arguments)
    net = Net()
    adam = torch.optim.Adam(net.parameters(), 0.001 * dist.get_world_size())
    engine, *_ = deepspeed.initialize(model=net, optimizer=adam, config=configuration(arguments))

    for epoch in range(8):
        sampler.set_epoch(epoch)
        loss = train_epoch(engine, loader)
        share = accuracy(engine, held_out, engine.device)
        if dist.get_rank() == 0:
            print(f'epoch {epoch + 1:2d}  loss {loss:.6f}  accuracy {share:.4f}', flush=True)
    dist.destroy_process_group()


if __name__ == '__main__':
    main()
