#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains the network of ddp.py with PyTorch Lightning.

    srun --hvd --nodes=2 --ntasks-per-node=4 python3 with_lightning.py

Lightning requires --ntasks-per-node under Slurm. The script also runs alone, and with hvdrun or
torchrun. If you have the package `lightning` instead of `pytorch_lightning`, import
lightning.pytorch.
"""

import os

import pytorch_lightning as lightning
import torch
import torch.nn.functional as F
from pytorch_lightning.strategies import DDPStrategy
from torch.utils.data import DataLoader

import horovod.torch.distributed  # noqa: F401: only torch before 2.5 needs this
from ddp import Net, load_images


class Digits(lightning.LightningModule):
    def __init__(self, lr):
        super().__init__()
        self.net = Net()
        self.lr = lr

    def training_step(self, batch, _):
        images, labels = batch
        loss = F.cross_entropy(self.net(images), labels)
        self.log('loss', loss)
        return loss

    def validation_step(self, batch, _):
        images, labels = batch
        right = self.net(images).argmax(1) == labels
        self.log('accuracy', right.float().mean(), on_epoch=True, sync_dist=True)

    def on_validation_epoch_end(self):
        accuracy = self.trainer.callback_metrics['accuracy']
        self.print(f'epoch {self.current_epoch + 1:2d}  accuracy {accuracy:.4f}', flush=True)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), self.lr, momentum=0.9)


def main():
    lightning.seed_everything(1)
    size = int(os.environ.get('WORLD_SIZE', 1))
    size_of_node = int(os.environ.get('LOCAL_WORLD_SIZE', size))
    train_set, held_out = load_images()
    trainer = lightning.Trainer(
        accelerator='cpu', devices=size_of_node, num_nodes=size // size_of_node,
        strategy=DDPStrategy(process_group_backend='hvd'), max_epochs=8,
        logger=False, enable_checkpointing=False, enable_progress_bar=False,
        num_sanity_val_steps=0)
    trainer.fit(Digits(lr=0.02 * size),
                DataLoader(train_set, batch_size=16, shuffle=True, drop_last=True),
                DataLoader(held_out, batch_size=64))


if __name__ == '__main__':
    main()
