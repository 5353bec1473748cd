#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains one model for two tasks. Each process set trains the part of the model for one task.

    hvdrun -np 4 python3 process_sets.py

All ranks share the trunk of the model. The even ranks train a head for the first task, and the odd
ranks train a head for the second task.

During the backward pass, hvd averages the gradients of the trunk over all ranks, and the gradients
of a head over the ranks of its process set.
"""

import argparse

import torch

import horovod.torch as hvd

TASKS = [torch.sin, torch.abs]  # the functions that the even ranks and the odd ranks learn


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--steps', type=int, default=300)
    arguments = parser.parse_args()
    hvd.init(process_sets='dynamic')
    if hvd.size() < 2:
        raise SystemExit('this example needs two ranks or more: hvdrun -np 4 python3 ...')
    # All ranks add both sets, in the same order. Each rank then uses the set that it belongs to.
    sets = [hvd.add_process_set(range(first, hvd.size(), 2)) for first in range(2)]
    task = hvd.rank() % 2
    members = sets[task]

    torch.manual_seed(hvd.rank())
    trunk = torch.nn.Sequential(torch.nn.Linear(1, 64), torch.nn.Tanh())
    head = torch.nn.Linear(64, 1)
    hvd.broadcast_parameters(trunk.state_dict(), root_rank=0)
    for name, tensor in head.state_dict().items():
        hvd.broadcast_(tensor, members.ranks[0], f'head.{name}', members)
    optimizers = [
        hvd.DistributedOptimizer(torch.optim.Adam(trunk.parameters(), 0.01),
                                 [(f'trunk.{name}', p) for name, p in trunk.named_parameters()]),
        hvd.DistributedOptimizer(torch.optim.Adam(head.parameters(), 0.01),
                                 [(f'head.{name}', p) for name, p in head.named_parameters()],
                                 process_set=members)]
    for _ in range(arguments.steps):
        x = torch.rand(64, 1) * 6 - 3
        loss = torch.nn.functional.mse_loss(head(trunk(x)), TASKS[task](x))
        for optimizer in optimizers:
            optimizer.zero_grad()
        loss.backward()
        for optimizer in optimizers:
            optimizer.step()

    mean = hvd.allreduce(loss.detach(), name='loss', process_set=members).item()
    same = all(torch.equal(other, trunk[0].weight) for other in hvd.allgather(
        trunk[0].weight.detach()[None]))
    if members.rank() == 0:
        print(f'{TASKS[task].__name__}: loss {mean:.4f} on ranks {members.ranks}; trunk is '
              f'{"the same" if same else "NOT the same"} on all', flush=True)


if __name__ == '__main__':
    main()
