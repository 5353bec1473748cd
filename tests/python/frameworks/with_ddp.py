# SPDX-License-Identifier: Apache-2.0
"""Trains with DistributedDataParallel, as TorchTitan and scripts for torchrun do."""

import os

import torch
import torch.distributed as dist

import horovod.torch.distributed  # noqa: F401: only torch before 2.5 needs this
import tiny

dist.init_process_group('hvd')
model = torch.nn.parallel.DistributedDataParallel(tiny.layer())
optimizer = torch.optim.SGD(model.parameters(), 0.01)
for x, y in torch.utils.data.DataLoader(tiny.images(int(os.environ['RANK'])), 8):
    optimizer.zero_grad()
    torch.nn.functional.mse_loss(model(x), y).backward()
    optimizer.step()
tiny.tell_torch(model.module.weight)
del model
dist.destroy_process_group()
