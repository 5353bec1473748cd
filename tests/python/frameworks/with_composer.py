# SPDX-License-Identifier: Apache-2.0
"""Trains with Composer."""

import os

import torch
from composer import Trainer
from composer.devices import DeviceCPU
from composer.models import ComposerModel

import tiny


class Model(ComposerModel):
    def __init__(self):
        super().__init__()
        self.layer = tiny.layer()

    def forward(self, batch):
        return self.layer(batch[0])

    def loss(self, outputs, batch):
        return torch.nn.functional.mse_loss(outputs, batch[1])


device = DeviceCPU()
device.dist_backend = 'hvd'
model = Model()
images = torch.utils.data.ConcatDataset([tiny.images(rank) for rank in range(4)])
sampler = torch.utils.data.DistributedSampler(images, int(os.environ['WORLD_SIZE']), int(os.environ['RANK']))
loader = torch.utils.data.DataLoader(images, 8, sampler=sampler)
Trainer(model=model, train_dataloader=loader, optimizers=torch.optim.SGD(model.parameters(), 0.01),
        max_duration='1ep', device=device, progress_bar=False).fit()
tiny.tell_torch(model.layer.weight)
