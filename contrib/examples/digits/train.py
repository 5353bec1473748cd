#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains a small network on the handwritten digits that ship with scikit-learn.

The same script runs alone, on one machine, and in a Slurm job:

    python3 train.py
    hvdrun -np 4 python3 train.py
    srun --hvd python3 train.py

The images come with scikit-learn: pip install scikit-learn
"""

import argparse
import json
import os
import time

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

import horovod.torch as hvd

HELD_OUT = 360  # test images; the data set has 1,797 images


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--epochs', type=int, default=8)
    parser.add_argument('--batch-size', type=int, default=16, help='images per rank and step')
    parser.add_argument('--lr', type=float, default=0.02, help='learning rate for one rank')
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--float64', action='store_true', help='compute in double precision')
    parser.add_argument('--checkpoint', metavar='DIR', help='save a checkpoint here after each '
                        'epoch, and continue from the one that is there')
    parser.add_argument('--log', metavar='FILE', help='append one JSON line per epoch')
    parser.add_argument('--dump-params', metavar='DIR', help="save every rank's parameters here")
    return parser.parse_args()


class Net(torch.nn.Module):
    """Two convolutions and two dense layers for images of 8 x 8 pixels."""

    def __init__(self):
        super().__init__()
        self.conv1 = torch.nn.Conv2d(1, 16, 3, padding=1)
        self.conv2 = torch.nn.Conv2d(16, 32, 3, padding=1)
        self.dense1 = torch.nn.Linear(32 * 4 * 4, 64)
        self.dense2 = torch.nn.Linear(64, 10)

    def forward(self, images):
        x = F.relu(self.conv1(images))
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        return self.dense2(F.relu(self.dense1(x.flatten(1))))


def load_images(dtype):
    """Returns the training and the test images, with the same split on every rank."""
    digits = load_digits()
    images = torch.tensor(digits.images, dtype=dtype).unsqueeze(1) / 16
    labels = torch.tensor(digits.target)
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(0))
    train, held_out = order[HELD_OUT:], order[:HELD_OUT]
    return (TensorDataset(images[train], labels[train]),
            TensorDataset(images[held_out], labels[held_out]))


def choose_device():
    """Returns this rank's GPU if there are GPUs. Otherwise returns the CPU, and limits torch to
    this rank's share of the cores unless OMP_NUM_THREADS is set."""
    if torch.cuda.is_available():
        torch.cuda.set_device(hvd.local_rank())
        return torch.device('cuda', hvd.local_rank())
    if 'OMP_NUM_THREADS' not in os.environ:
        bound = len(os.sched_getaffinity(0))
        torch.set_num_threads(max(1, min(bound, os.cpu_count() // hvd.local_size())))
    return torch.device('cpu')


def divide(dataset, arguments):
    """Returns the sampler and the loader of this rank's images. Image i of one shuffled order goes
    to rank i % N, so a step of N ranks sees the same images as a step of one rank with N times the
    batch size."""
    sampler = DistributedSampler(dataset, num_replicas=hvd.size(), rank=hvd.rank(),
                                 seed=arguments.seed)
    loader = DataLoader(dataset, arguments.batch_size, sampler=sampler, drop_last=True)
    if len(loader) == 0:
        raise SystemExit(f'{len(sampler)} images a rank do not fill a batch of '
                         f'{arguments.batch_size}: use a smaller --batch-size or fewer ranks')
    return sampler, loader


def train_epoch(model, optimizer, loader, device):
    """Trains on this rank's images once. Returns the mean loss over all ranks, and the number of
    images that all ranks together have seen."""
    model.train()
    total = torch.zeros((), dtype=torch.float64)
    for images, labels in loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(images.to(device)), labels.to(device))
        loss.backward()
        optimizer.step()
        total += loss.detach().double().cpu()
    seen = len(loader) * loader.batch_size * hvd.size()
    return hvd.allreduce(total / len(loader), name='loss').item(), seen


def accuracy(model, dataset, device):
    """Returns the fraction of correct predictions. Each rank tests a part of the images."""
    model.eval()
    images, labels = (part[hvd.rank()::hvd.size()].to(device) for part in dataset.tensors)
    with torch.no_grad():
        right = (model(images).argmax(1) == labels).sum()
    return hvd.allreduce(right.cpu(), op=hvd.Sum, name='right').item() / len(dataset)


def resume(path, model, optimizer):
    """Loads the checkpoint on rank 0, if there is one, and broadcasts the state of rank 0 to all
    ranks. Returns the first epoch to train."""
    epoch = 0
    if hvd.rank() == 0 and path and os.path.exists(path):
        saved = torch.load(path)
        model.load_state_dict(saved['model'])
        optimizer.load_state_dict(saved['optimizer'])
        epoch = saved['epoch']
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    hvd.broadcast_optimizer_state(optimizer, root_rank=0)
    return hvd.broadcast_object(epoch, root_rank=0, name='epoch')


def save(path, model, optimizer, epoch):
    """Writes a new file and renames it, so that the checkpoint is always complete."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    torch.save({'model': model.state_dict(), 'optimizer': optimizer.state_dict(),
                'epoch': epoch}, path + '.new')
    os.replace(path + '.new', path)


def report(log, **facts):
    """Prints and logs the results of an epoch."""
    print('epoch {epoch:2d}  loss {loss:.4f}  accuracy {accuracy:.4f}  '
          '{images_per_second:6.0f} images/s'.format(**facts), flush=True)
    if log:
        with open(log, 'a') as file:
            file.write(json.dumps(facts) + '\n')


def count(number, noun):
    """Returns such as "1 node" or "2 nodes"."""
    return f'{number} {noun}' + ('' if number == 1 else 's')


def main():
    arguments = parse_arguments()
    hvd.init()
    device = choose_device()
    torch.manual_seed(arguments.seed)
    dtype = torch.float64 if arguments.float64 else torch.float32
    train_set, held_out = load_images(dtype)

    sampler, loader = divide(train_set, arguments)
    model = Net().to(device, dtype)
    # N ranks see N times as many images in a step, so the learning rate is N times as large.
    optimizer = torch.optim.SGD(model.parameters(), arguments.lr * hvd.size(), momentum=0.9)
    optimizer = hvd.DistributedOptimizer(optimizer, model.named_parameters())
    checkpoint = arguments.checkpoint and os.path.join(arguments.checkpoint, 'checkpoint.pt')
    begin = resume(checkpoint, model, optimizer)
    if hvd.rank() == 0:
        print(f'{count(hvd.size(), "rank")} on {count(hvd.cross_size(), "node")}, '
              f'{len(train_set)} images, {device.type}', flush=True)

    for epoch in range(begin, arguments.epochs):
        sampler.set_epoch(epoch)  # another order in each epoch, the same on all ranks
        started = time.perf_counter()
        loss, seen = train_epoch(model, optimizer, loader, device)
        speed = seen / (time.perf_counter() - started)
        share = accuracy(model, held_out, device)
        if hvd.rank() == 0:
            report(arguments.log, epoch=epoch + 1, loss=loss, accuracy=share,
                   images_per_second=speed, ranks=hvd.size())
            if checkpoint:
                save(checkpoint, model, optimizer, epoch + 1)

    if arguments.dump_params:
        os.makedirs(arguments.dump_params, exist_ok=True)
        torch.save(model.state_dict(),
                   os.path.join(arguments.dump_params, f'rank{hvd.rank()}.pt'))
    hvd.shutdown()


if __name__ == '__main__':
    main()
