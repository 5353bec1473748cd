# SPDX-License-Identifier: Apache-2.0
"""Trains with Accelerate, in the process group of the script."""

import torch
import torch.distributed as dist
from accelerate import Accelerator

import tiny

dist.init_process_group('hvd')
accelerator = Accelerator(cpu=True)
layer = tiny.layer()
model, optimizer = accelerator.prepare(layer, torch.optim.SGD(layer.parameters(), 0.01))
for x, y in torch.utils.data.DataLoader(tiny.images(accelerator.process_index), 8):
    optimizer.zero_grad()
    accelerator.backward(torch.nn.functional.mse_loss(model(x), y))
    optimizer.step()
tiny.tell_torch(layer.weight)
dist.destroy_process_group()
