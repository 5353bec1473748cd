#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures images per second in training on random images; prints them like Horovod's benchmark.

    srun --hvd python3 synthetic_benchmark.py --model resnet50 --batch-size 32
"""

import argparse
import statistics
import time

import torch
import torch.nn.functional as F

import devices
import horovod.torch as hvd
import networks
from devices import say


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0],
                                     formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument('--fp16-allreduce', action='store_true',
                        help='send gradients in half precision')
    parser.add_argument('--model', default='resnet50',
                        help='a network of networks.py or torchvision')
    parser.add_argument('--batch-size', type=int, default=32, help='images per rank and step')
    parser.add_argument('--image-size', type=int, default=224)
    parser.add_argument('--num-warmup-batches', type=int, default=10)
    parser.add_argument('--num-batches-per-iter', type=int, default=10)
    parser.add_argument('--num-iters', type=int, default=10)
    parser.add_argument('--no-cuda', action='store_true')
    parser.add_argument('--use-adasum', action='store_true')
    return parser.parse_args()


def make_optimizer(model, arguments):
    """Returns the distributed optimizer. With Average the learning rate is multiplied by the number
    of ranks, with Adasum it is not."""
    scale = 1 if arguments.use_adasum else hvd.size()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01 * scale)
    compression = hvd.Compression.fp16 if arguments.fp16_allreduce else hvd.Compression.none
    optimizer = hvd.DistributedOptimizer(
        optimizer, named_parameters=model.named_parameters(), compression=compression,
        op=hvd.Adasum if arguments.use_adasum else hvd.Average)
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    hvd.broadcast_optimizer_state(optimizer, root_rank=0)
    return optimizer


def main():
    arguments = parse_arguments()
    hvd.init()
    device = devices.choose(not arguments.no_cuda)
    model = networks.by_name(arguments.model).to(device)
    optimizer = make_optimizer(model, arguments)
    side = arguments.image_size
    images = torch.randn(arguments.batch_size, 3, side, side, device=device)
    labels = torch.randint(2, (arguments.batch_size,), device=device)

    def run(steps):
        """Takes this many steps; returns the seconds that they took."""
        begin = time.perf_counter()
        for _ in range(steps):
            optimizer.zero_grad()
            F.cross_entropy(model(images), labels).backward()
            optimizer.step()
        if device.type == 'cuda':
            torch.cuda.synchronize()
        return time.perf_counter() - begin

    kind = 'GPU' if device.type == 'cuda' else 'CPU'
    say(f'Model: {arguments.model}\nBatch size: {arguments.batch_size}')
    say(f'Number of {kind}s: {hvd.size()}\nRunning warmup...')
    run(arguments.num_warmup_batches)
    say('Running benchmark...')
    speeds = []
    for number in range(arguments.num_iters):
        seconds = run(arguments.num_batches_per_iter)
        speeds.append(arguments.batch_size * arguments.num_batches_per_iter / seconds)
        say(f'Iter #{number}: {speeds[-1]:.1f} img/sec per {kind}')
    mean, spread = statistics.mean(speeds), 1.96 * statistics.pstdev(speeds)
    say(f'Img/sec per {kind}: {mean:.1f} +-{spread:.1f}')
    say(f'Total img/sec on {hvd.size()} {kind}(s): {hvd.size() * mean:.1f} '
        f'+-{hvd.size() * spread:.1f}')


if __name__ == '__main__':
    main()
