#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains on unevenly divided data: the ranks have files of different lengths.

    hvdrun -np 3 python3 train.py
    srun --hvd python3 train.py

A rank without further batches calls hvd.join(). Until all ranks have joined, it takes part in the
reductions of the others with zeros. An average still divides by the number of all ranks, so the
last steps of an epoch are smaller. A rank that has joined early has missed steps, so at the end of
the epoch all ranks take over the model of the rank that joined last.
"""

import argparse

import torch

import horovod.torch as hvd


def load_file(rank, rows):
    """Returns noisy points of a curve, as if read from a file. Rank r has rows * (r + 1) points."""
    generator = torch.Generator().manual_seed(rank)
    x = torch.rand(rows * (rank + 1), 1, generator=generator) * 6 - 3
    return x, torch.sin(x) + 0.05 * torch.randn(x.shape, generator=generator)


def train_epoch(model, optimizer, batches):
    """Trains on this rank's batches once, then joins; returns the rank that joined last."""
    for x, y in batches:
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()
    return hvd.join()


def share_state(model, optimizer, root):
    """Broadcasts the state of the rank that joined last, which has taken every step."""
    hvd.broadcast_parameters(model.state_dict(), root_rank=root)
    hvd.broadcast_optimizer_state(optimizer, root_rank=root)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--epochs', type=int, default=20)
    parser.add_argument('--rows', type=int, default=256, help='number of points of rank 0')
    parser.add_argument('--batch-size', type=int, default=32, help='points per rank and step')
    arguments = parser.parse_args()

    hvd.init()
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Linear(1, 32), torch.nn.Tanh(), torch.nn.Linear(32, 1))
    optimizer = hvd.DistributedOptimizer(torch.optim.Adam(model.parameters(), 0.01),
                                         model.named_parameters())
    share_state(model, optimizer, root=0)
    x, y = load_file(hvd.rank(), arguments.rows)
    print(f'rank {hvd.rank()} has {len(x)} points', flush=True)

    for epoch in range(arguments.epochs):
        order = torch.randperm(len(x)).split(arguments.batch_size)
        last = train_epoch(model, optimizer, [(x[rows], y[rows]) for rows in order])
        share_state(model, optimizer, root=last)
        loss = torch.nn.functional.mse_loss(model(x), y).detach()
        mean = hvd.allreduce(loss, name='loss').item()
        if hvd.rank() == 0:
            print(f'epoch {epoch + 1:2d}  rank {last} was last  loss {mean:.4f}', flush=True)
    hvd.shutdown()


if __name__ == '__main__':
    main()
