#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains a recurrent network on the handwritten digits that ship with scikit-learn: an LSTM reads each
picture row by row, as a sequence of 8 steps of 8 pixels.

    python3 rnn.py
    hvdrun -np 4 python3 rnn.py
    srun --hvd python3 rnn.py

The images come with scikit-learn: pip install scikit-learn
"""

import argparse
import time

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

import horovod.torch as hvd

HELD_OUT = 360  # test images; the data set has 1,797 images


class RowReader(torch.nn.Module):
    """An LSTM over the rows, and a dense layer on its last output."""

    def __init__(self):
        super().__init__()
        self.lstm = torch.nn.LSTM(8, 64, batch_first=True)
        self.dense = torch.nn.Linear(64, 10)

    def forward(self, rows):
        return self.dense(self.lstm(rows)[0][:, -1])


def load_images():
    """Returns the training and the test images, with the same split on every rank."""
    digits = load_digits()
    images = torch.tensor(digits.images, dtype=torch.float32) / 16
    labels = torch.tensor(digits.target)
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(0))
    return [TensorDataset(images[part], labels[part]) for part in (order[HELD_OUT:], order[:HELD_OUT])]


def train_epoch(model, optimizer, loader):
    model.train()
    for images, labels in loader:
        optimizer.zero_grad()
        F.cross_entropy(model(images), labels).backward()
        # Gradients of recurrent networks are clipped: after the average over all ranks, before the step.
        optimizer.synchronize()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        with optimizer.skip_synchronize():
            optimizer.step()


def accuracy(model, dataset):
    """Returns the fraction of correct predictions. Each rank tests a part of the images."""
    model.eval()
    images, labels = (part[hvd.rank()::hvd.size()] for part in dataset.tensors)
    with torch.no_grad():
        right = (model(images).argmax(1) == labels).sum()
    return hvd.allreduce(right, op=hvd.Sum, name='right').item() / len(dataset)


def main():
    parser = argparse.ArgumentParser(description='Trains an LSTM on handwritten digits.')
    parser.add_argument('--epochs', type=int, default=8)
    parser.add_argument('--batch-size', type=int, default=16, help='images per rank and step')
    arguments = parser.parse_args()
    hvd.init()
    torch.manual_seed(1)
    train_set, held_out = load_images()
    sampler = DistributedSampler(train_set, num_replicas=hvd.size(), rank=hvd.rank())
    loader = DataLoader(train_set, arguments.batch_size, sampler=sampler, drop_last=True)
    model = RowReader()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.003 * hvd.size())
    optimizer = hvd.DistributedOptimizer(optimizer, model.named_parameters())
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)

    for epoch in range(1, arguments.epochs + 1):
        sampler.set_epoch(epoch)  # another order in each epoch, the same on all ranks
        started = time.perf_counter()
        train_epoch(model, optimizer, loader)
        speed = len(loader) * arguments.batch_size * hvd.size() / (time.perf_counter() - started)
        share = accuracy(model, held_out)
        if hvd.rank() == 0:
            print(f'epoch {epoch:2d}  accuracy {share:.4f}  {speed:6.0f} images/s', flush=True)
    hvd.shutdown()


if __name__ == '__main__':
    main()
