# SPDX-License-Identifier: Apache-2.0
"""Trains with Lightning's Trainer."""

import os

import lightning.pytorch as lightning
import torch
from lightning.pytorch.strategies import DDPStrategy

import tiny


class Model(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = tiny.layer()

    def training_step(self, batch, _):
        return torch.nn.functional.mse_loss(self.layer(batch[0]), batch[1])

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.01)


devices, nodes = tiny.places()
trainer = lightning.Trainer(
    accelerator='cpu', devices=devices, num_nodes=nodes, max_epochs=1, logger=False,
    strategy=DDPStrategy(process_group_backend='hvd'), use_distributed_sampler=False,
    enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False)
model = Model()
trainer.fit(model, torch.utils.data.DataLoader(tiny.images(int(os.environ['RANK'])), 8))
tiny.tell_torch(model.layer.weight)
