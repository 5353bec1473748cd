# SPDX-License-Identifier: Apache-2.0
"""Trains with the Trainer of Transformers, in the process group of the script."""

import tempfile

import torch
import torch.distributed as dist
from transformers import Trainer, TrainingArguments

import tiny


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = tiny.layer()

    def forward(self, x, y):
        return {'loss': torch.nn.functional.mse_loss(self.layer(x), y)}


dist.init_process_group('hvd')
model = Model()
images = [{'x': x, 'y': y} for rank in range(4) for x, y in tiny.images(rank)]
with tempfile.TemporaryDirectory() as folder:
    Trainer(model, TrainingArguments(
        folder, use_cpu=True, max_steps=3, per_device_train_batch_size=8, save_strategy='no',
        report_to=[], disable_tqdm=True), train_dataset=images).train()
tiny.tell_torch(model.layer.weight)
dist.destroy_process_group()
