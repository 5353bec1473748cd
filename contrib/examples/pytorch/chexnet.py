#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains DenseNet-121 to recognise fourteen findings in chest X-rays, like CheXNet.

    srun --hvd python3 chexnet.py --data xrays.npz --epochs 10

An image may have any number of findings. The measure is the area under the ROC curve (AUC) of each
finding.

xrays.npz has the arrays train_images [n, side, side] (uint8), train_labels [n, 14] (0 or 1),
test_images and test_labels. Without --data the script generates images with a faint spot for each
finding. --no-lr-scaling keeps the learning rate of one rank, to show the effect of scaling it.
"""

import argparse
import time

import numpy
import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

import devices
import gpu_use
import horovod.torch as hvd
import networks
from devices import say

FINDINGS = ('Atelectasis Cardiomegaly Effusion Infiltration Mass Nodule Pneumonia Pneumothorax '
            'Consolidation Edema Emphysema Fibrosis Pleural_Thickening Hernia').split()


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0],
                                     formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument('--data', metavar='FILE.npz', help='images and labels; see above')
    parser.add_argument('--images', type=int, default=2048, help='number of generated images')
    parser.add_argument('--image-size', type=int, default=224, help='side of generated images')
    parser.add_argument('--blocks', default='6,12,24,16', help='layers in each dense block')
    parser.add_argument('--growth', type=int, default=32, help='features that a layer adds')
    parser.add_argument('--epochs', type=int, default=10)
    parser.add_argument('--batch-size', type=int, default=16, help='images per rank and step')
    parser.add_argument('--lr', type=float, default=1e-3, help='learning rate for one rank')
    parser.add_argument('--no-lr-scaling', action='store_true',
                        help='do not multiply the learning rate by the number of ranks')
    parser.add_argument('--steps-log', metavar='FILE',
                        help='write a line for each step of rank 0: seconds, loss, GPU utilisation '
                        'in %%')
    return parser.parse_args()


def generated(count, side):
    """Generates images, the same on all ranks."""
    generator = torch.Generator().manual_seed(0)
    labels = (torch.rand(count, len(FINDINGS), generator=generator) < 0.3).float()
    cells = torch.zeros(len(FINDINGS), 4, 4)
    for finding in range(len(FINDINGS)):
        cells[finding, finding // 4, finding % 4] = 1
    spots = F.interpolate(cells[:, None], size=(side, side))[:, 0]
    images = torch.rand(count, side, side, generator=generator)
    images += torch.einsum('nf,fxy->nxy', labels, spots)
    return TensorDataset(images / 2, labels)


def load(arguments):
    """Returns the training set and the test set."""
    if arguments.data is None:
        few = arguments.images // 4
        return torch.utils.data.random_split(
            generated(arguments.images, arguments.image_size), [arguments.images - few, few],
            generator=torch.Generator().manual_seed(0))
    with numpy.load(arguments.data) as file:
        return [TensorDataset(torch.from_numpy(file[f'{part}_images']).float() / 255,
                              torch.from_numpy(file[f'{part}_labels']).float())
                for part in ('train', 'test')]


def three_channels(images):
    return images[:, None].expand(-1, 3, -1, -1)


def auc(scores, labels):
    """Returns the probability that an image with the finding has a higher score than one without
    it; equal scores count half. Returns NaN if there are no images with it, or none without it."""
    values, places, counts = torch.unique(scores, return_inverse=True, return_counts=True)
    mean_rank = counts.cumsum(0) - (counts - 1) / 2  # equal scores share one rank, counted from 1
    ranks = mean_rank[places].double()
    positive = labels > 0.5
    few, many = positive.sum().item(), (~positive).sum().item()
    if few == 0 or many == 0:
        return float('nan')
    return (ranks[positive].sum().item() - few * (few + 1) / 2) / (few * many)


@torch.no_grad()
def evaluate(model, dataset, batch_size, device):
    """Returns the AUC of each finding over all test images. Each rank scores a part of them."""
    model.eval()
    own = torch.utils.data.Subset(dataset, range(hvd.rank(), len(dataset), hvd.size()))
    results = [(model(three_channels(images.to(device))).cpu(), labels)
               for images, labels in DataLoader(own, batch_size)]
    none = torch.empty(0, len(FINDINGS))
    scores, labels = (hvd.allgather(torch.cat([none, *part]), name=name)
                      for part, name in zip(zip(*results) if results else ((), ()),
                                            ('scores', 'labels')))
    return [auc(scores[:, finding], labels[:, finding]) for finding in range(len(FINDINGS))]


def train(model, optimizer, loader, meter, log, device):
    """Trains one epoch; returns the mean loss over all ranks."""
    model.train()
    total = 0.0
    for images, labels in loader:
        begin = time.perf_counter()
        optimizer.zero_grad()
        loss = F.binary_cross_entropy_with_logits(
            model(three_channels(images.to(device))), labels.to(device))
        loss.backward()
        optimizer.step()
        total += loss.item()
        if log:
            print(f'{time.perf_counter() - begin:.4f} {loss.item():.4f} {meter.percent()}',
                  file=log, flush=True)
    return hvd.allreduce(torch.tensor(total / len(loader)), name='loss').item()


def count(number, noun):
    """Returns such as "1 node" or "2 nodes"."""
    return f'{number} {noun}' + ('' if number == 1 else 's')


def main():
    arguments = parse_arguments()
    hvd.init()
    torch.manual_seed(1)
    device = devices.choose()
    train_set, test_set = load(arguments)
    sampler = DistributedSampler(train_set, hvd.size(), hvd.rank())
    loader = DataLoader(train_set, arguments.batch_size, sampler=sampler, drop_last=True)
    blocks = tuple(map(int, arguments.blocks.split(',')))
    model = networks.densenet(len(FINDINGS), blocks, arguments.growth).to(device)
    scale = 1 if arguments.no_lr_scaling else hvd.size()
    optimizer = hvd.DistributedOptimizer(
        torch.optim.Adam(model.parameters(), lr=arguments.lr * scale),
        named_parameters=model.named_parameters())
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    hvd.broadcast_optimizer_state(optimizer, root_rank=0)
    meter = gpu_use.Meter(device)
    say(f'{sum(p.numel() for p in model.parameters())} parameters, {count(hvd.size(), "rank")}, '
        f'learning rate {arguments.lr * scale:g}; GPU utilisation: {meter.state}')
    log = open(arguments.steps_log, 'w') if arguments.steps_log and hvd.rank() == 0 else None
    for epoch in range(arguments.epochs):
        sampler.set_epoch(epoch)
        loss = train(model, optimizer, loader, meter, log, device)
        areas = evaluate(model, test_set, arguments.batch_size, device)
        say(f'epoch {epoch + 1:3d}  loss {loss:.4f}  mean AUC {numpy.nanmean(areas):.4f}')
    for finding, area in zip(FINDINGS, areas):
        say(f'  {finding:20} AUC {area:.4f}')


if __name__ == '__main__':
    main()
