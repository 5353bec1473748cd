# SPDX-License-Identifier: Apache-2.0
"""Trains with Ray Train, which starts the ranks.

usage: with_ray.py RANKS"""

import sys
import tempfile

import ray.train.torch
import torch
from ray.train import RunConfig, ScalingConfig

import tiny


def train():
    layer = tiny.layer()
    model = ray.train.torch.prepare_model(layer)
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    for x, y in torch.utils.data.DataLoader(tiny.images(ray.train.get_context().get_world_rank()), 8):
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()
    tiny.tell_torch(layer.weight)


with tempfile.TemporaryDirectory() as folder:
    ray.init()
    ray.train.torch.TorchTrainer(
        train, torch_config=ray.train.torch.TorchConfig(backend='hvd'),
        scaling_config=ScalingConfig(num_workers=int(sys.argv[1]), resources_per_worker={'CPU': 0.5}),
        run_config=RunConfig(storage_path=folder)).fit()
