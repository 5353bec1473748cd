#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains a small network on handwritten digits, and continues when ranks die or join.

    srun --hvd=elastic python3 train.py
    hvdrun -np 4 --min-np 1 python3 train.py

Kill one of the ranks: the others return to their last commit, divide the rest of the epoch among
themselves, and finish the training. The number of images in a step is the same for any number of
ranks, so the learning rate does not change with it.

The images come with scikit-learn: pip install scikit-learn
"""

import argparse
import os

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, TensorDataset

import horovod.torch as hvd

HELD_OUT = 360  # test images; the data set has 1,797 images


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--epochs', type=int, default=12)
    parser.add_argument('--batch-size', type=int, default=48,
                        help='images per step, on all ranks together')
    parser.add_argument('--lr', type=float, default=0.04, help='learning rate')
    parser.add_argument('--commit-every', type=int, default=5, metavar='N',
                        help='commit after every N batches')
    parser.add_argument('--seed', type=int, default=1)
    return parser.parse_args()


def load_images():
    """Returns the training and the test images, with the same split on every rank."""
    digits = load_digits()
    images = torch.tensor(digits.images, dtype=torch.float32).flatten(1) / 16
    labels = torch.tensor(digits.target)
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(0))
    train, held_out = order[HELD_OUT:], order[:HELD_OUT]
    return (TensorDataset(images[train], labels[train]),
            TensorDataset(images[held_out], labels[held_out]))


def train_epoch(state, train_set, arguments):
    """Trains the rest of the epoch. Makes a new loader, because the ranks may have changed."""
    batch_size = max(1, arguments.batch_size // hvd.size())
    loader = DataLoader(train_set, batch_size, sampler=state.sampler)
    state.model.train()
    for index, (images, labels) in enumerate(loader):
        state.optimizer.zero_grad()
        F.cross_entropy(state.model(images), labels).backward()
        state.optimizer.step()
        state.sampler.record_batch(index, batch_size)
        if (index + 1) % arguments.commit_every == 0:
            state.commit()


def accuracy(model, dataset):
    """Returns the fraction of correct predictions. Each rank tests a part of the images."""
    model.eval()
    images, labels = (part[hvd.rank()::hvd.size()] for part in dataset.tensors)
    with torch.no_grad():
        right = (model(images).argmax(1) == labels).sum()
    return hvd.allreduce(right, op=hvd.Sum, name='right').item() / len(dataset)


@hvd.elastic.run
def train(state, train_set, held_out, arguments):
    """Trains from the state of the last commit to the end. hvd calls this function again when ranks
    have died or joined."""
    while state.epoch < arguments.epochs:
        train_epoch(state, train_set, arguments)
        share = accuracy(state.model, held_out)
        if hvd.rank() == 0:
            print(f'epoch {state.epoch + 1:2d}  accuracy {share:.4f}  '
                  f'{count(hvd.size(), "rank")} on {count(hvd.cross_size(), "node")}', flush=True)
        state.epoch += 1
        state.sampler.set_epoch(state.epoch)
        state.commit()


def count(number, noun):
    """Returns such as "1 node" or "2 nodes"."""
    return f'{number} {noun}' + ('' if number == 1 else 's')


def main():
    arguments = parse_arguments()
    hvd.init()
    if 'OMP_NUM_THREADS' not in os.environ:
        torch.set_num_threads(max(1, len(os.sched_getaffinity(0)) // hvd.local_size()))
    torch.manual_seed(arguments.seed)
    train_set, held_out = load_images()
    model = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(),
                                torch.nn.Linear(128, 10))
    optimizer = hvd.DistributedOptimizer(
        torch.optim.SGD(model.parameters(), arguments.lr, momentum=0.9),
        model.named_parameters())
    state = hvd.elastic.TorchState(model=model, optimizer=optimizer, epoch=0,
                                   sampler=hvd.elastic.ElasticSampler(train_set))
    state.register_reset_callbacks([lambda: print(
        f'rank {hvd.rank()} of {hvd.size()} restarts', flush=True)])
    train(state, train_set, held_out, arguments)
    hvd.shutdown()


if __name__ == '__main__':
    main()
