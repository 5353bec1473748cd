# SPDX-License-Identifier: Apache-2.0
"""Trains with Lightning's Fabric."""

import lightning
import torch
from lightning.fabric.strategies import DDPStrategy

import tiny

devices, nodes = tiny.places()
fabric = lightning.Fabric(accelerator='cpu', devices=devices, num_nodes=nodes,
                          strategy=DDPStrategy(process_group_backend='hvd'))
fabric.launch()
layer = tiny.layer()
model, optimizer = fabric.setup(layer, torch.optim.SGD(layer.parameters(), 0.01))
for x, y in torch.utils.data.DataLoader(tiny.images(fabric.global_rank), 8):
    optimizer.zero_grad()
    fabric.backward(torch.nn.functional.mse_loss(model(x), y))
    optimizer.step()
tiny.tell_torch(layer.weight)
