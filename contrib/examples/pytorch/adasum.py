#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares Average and Adasum when many ranks train with the learning rate of one rank.

    hvdrun -np 4 python3 adasum.py

Average takes the mean of the ranks' gradients: N ranks take one step where one rank would take N
steps. Adasum adds up orthogonal gradients and averages parallel ones, so the learning rate of one
rank remains suitable. The number of ranks must be a power of two.
"""

import argparse

import torch

import horovod.torch as hvd
from devices import say


def train(op, arguments):
    """Trains with the reduction ``op``; returns the mean loss over all ranks at the end."""
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.Tanh(), torch.nn.Linear(32, 1))
    optimizer = hvd.DistributedOptimizer(
        torch.optim.SGD(model.parameters(), lr=arguments.lr),
        named_parameters=model.named_parameters(), op=op)
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    data = torch.Generator().manual_seed(100 + hvd.rank())  # each rank has its own data
    weights = torch.linspace(-1, 1, 8)
    for _ in range(arguments.steps):
        inputs = torch.randn(32, 8, generator=data)
        loss = torch.nn.functional.mse_loss(model(inputs)[:, 0], torch.sin(inputs @ weights))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return hvd.allreduce(loss.detach(), name='loss').item()


def count(number, noun):
    """Returns such as "1 node" or "2 nodes"."""
    return f'{number} {noun}' + ('' if number == 1 else 's')


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--lr', type=float, default=0.05, help='learning rate for one rank')
    parser.add_argument('--steps', type=int, default=100)
    arguments = parser.parse_args()
    hvd.init()
    for name, op in (('Average', hvd.Average), ('Adasum', hvd.Adasum)):
        say(f'{name:8} loss {train(op, arguments):.4f} after {count(arguments.steps, "step")} '
            f'of {count(hvd.size(), "rank")}')


if __name__ == '__main__':
    main()
