#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains a small network on scikit-learn's handwritten digits with DistributedDataParallel.

The same script runs alone, on one machine, and in a Slurm job:

    python3 ddp.py
    hvdrun -np 4 python3 ddp.py              # or: torchrun --nproc_per_node 4 ddp.py
    srun --hvd python3 ddp.py

The images come with scikit-learn: pip install scikit-learn
"""

import argparse
import json
import os
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

HELD_OUT = 360  # test images; the data set has 1,797 images


def parse_arguments(description):
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    parser.add_argument('--backend', choices=['hvd', 'gloo', 'nccl'],
                        default='nccl' if torch.cuda.is_available() else 'hvd')
    parser.add_argument('--epochs', type=int, default=8)
    parser.add_argument('--batch-size', type=int, default=16, help='images per rank and step')
    parser.add_argument('--lr', type=float, default=0.02, help='learning rate for one rank')
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--float64', action='store_true', help='compute in double precision')
    parser.add_argument('--checkpoint', metavar='FILE', help='save a checkpoint here after each '
                        'epoch, and continue from the one that is there')
    parser.add_argument('--log', metavar='FILE', help='append one JSON line per epoch')
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


def load_images(dtype=torch.float32):
    """Returns the training and the test images, with the same split on every rank."""
    digits = load_digits()
    images = torch.tensor(digits.images, dtype=dtype).unsqueeze(1) / 16
    labels = torch.tensor(digits.target)
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(0))
    train, held_out = order[HELD_OUT:], order[:HELD_OUT]
    return (TensorDataset(images[train], labels[train]),
            TensorDataset(images[held_out], labels[held_out]))


def join_job(backend):
    """Creates the default process group. Returns the device of this rank: a GPU with NCCL,
    otherwise the CPU."""
    if backend == 'hvd':
        import horovod.torch.distributed  # noqa: F401: only torch before 2.5 needs this
    device = torch.device('cpu')
    if backend == 'nccl':
        device = torch.device('cuda', int(os.environ.get('LOCAL_RANK', 0)))
        torch.cuda.set_device(device)
    # Launchers set RANK, MASTER_ADDR and so on. Without a launcher, the process is a group of one.
    alone = {'store': dist.HashStore(), 'rank': 0, 'world_size': 1}
    dist.init_process_group(backend, **({} if 'RANK' in os.environ else alone))
    return device


def divide(dataset, arguments):
    """Returns the sampler and the loader of this rank's images. Image i of one shuffled order goes
    to rank i % N, so a step of N ranks sees the same images as a step of one rank with N times the
    batch size."""
    sampler = DistributedSampler(dataset, seed=arguments.seed)
    loader = DataLoader(dataset, arguments.batch_size, sampler=sampler, drop_last=True)
    if len(loader) == 0:
        raise SystemExit(f'{len(sampler)} images a rank do not fill a batch of '
                         f'{arguments.batch_size}: use a smaller --batch-size or fewer ranks')
    return sampler, loader


def train_epoch(model, optimizer, loader, device):
    """Trains on this rank's images once; returns the mean loss over all ranks."""
    model.train()
    total = torch.zeros((), dtype=torch.float64, device=device)
    for images, labels in loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(images.to(device)), labels.to(device))
        loss.backward()
        optimizer.step()
        total += loss.detach()
    dist.all_reduce(total)
    return total.item() / len(loader) / dist.get_world_size()


def accuracy(model, dataset, device):
    """Returns the fraction of correct predictions. Each rank tests a part of the images."""
    model.eval()
    images, labels = (part[dist.get_rank()::dist.get_world_size()].to(device)
                      for part in dataset.tensors)
    with torch.no_grad():
        right = (model(images).argmax(1) == labels).sum()
    dist.all_reduce(right)
    return right.item() / len(dataset)


def resume(path, model, optimizer):
    """Reads the checkpoint on rank 0, if there is one, and loads it on all ranks. Returns the first
    epoch to train."""
    saved = [None]
    if dist.get_rank() == 0 and path and os.path.exists(path):
        saved = [torch.load(path, map_location='cpu')]
    dist.broadcast_object_list(saved)
    if saved[0] is None:
        return 0
    model.load_state_dict(saved[0]['model'])
    optimizer.load_state_dict(saved[0]['optimizer'])
    return saved[0]['epoch']


def save(path, **state):
    """Writes a new file and renames it, so that the checkpoint is always complete."""
    torch.save(state, path + '.new')
    os.replace(path + '.new', path)


def report(log, **facts):
    """Prints and logs the results of an epoch."""
    print('epoch {epoch:2d}  loss {loss:.4f}  accuracy {accuracy:.4f}  '
          '{images_per_second:6.0f} images/s'.format(**facts), flush=True)
    if log:
        with open(log, 'a') as file:
            file.write(json.dumps(facts) + '\n')


def train(arguments, device):
    size, is_first = dist.get_world_size(), dist.get_rank() == 0
    torch.manual_seed(arguments.seed)
    dtype = torch.float64 if arguments.float64 else torch.float32
    train_set, held_out = load_images(dtype)

    sampler, loader = divide(train_set, arguments)
    net = Net().to(device, dtype)
    # N ranks see N times as many images in a step, so the learning rate is N times as large.
    optimizer = torch.optim.SGD(net.parameters(), arguments.lr * size, momentum=0.9)
    begin = resume(arguments.checkpoint, net, optimizer)
    model = DistributedDataParallel(net)
    if is_first:
        print(f'{count(size, "rank")}, {len(train_set)} images, {device.type}, backend '
              f'{dist.get_backend()}', flush=True)

    for epoch in range(begin, arguments.epochs):
        sampler.set_epoch(epoch)  # another order in each epoch, the same on all ranks
        started = time.perf_counter()
        loss = train_epoch(model, optimizer, loader, device)
        speed = len(loader) * arguments.batch_size * size / (time.perf_counter() - started)
        share = accuracy(net, held_out, device)
        if is_first:
            report(arguments.log, epoch=epoch + 1, loss=loss, accuracy=share,
                   images_per_second=speed, ranks=size)
            if arguments.checkpoint:
                save(arguments.checkpoint, model=net.state_dict(),
                     optimizer=optimizer.state_dict(), epoch=epoch + 1)


def count(number, noun):
    """Returns such as "1 node" or "2 nodes"."""
    return f'{number} {noun}' + ('' if number == 1 else 's')


def main():
    arguments = parse_arguments(__doc__)
    train(arguments, join_job(arguments.backend))
    # train() has freed the model: PyTorch 1.13 may hang if a DDP model outlives a group of Gloo.
    dist.destroy_process_group()


if __name__ == '__main__':
    main()
