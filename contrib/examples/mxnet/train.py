#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains a small gluon network on the handwritten digits that ship with scikit-learn.

The same script runs alone, on one machine, and in a Slurm job:

    python3 train.py
    hvdrun -np 4 python3 train.py
    srun --hvd python3 train.py

The images come with scikit-learn: pip install 'scikit-learn<1.6'
Later releases need a newer NumPy than MXNet does.
"""

import argparse
import json

import mxnet as mx
import numpy as np
from mxnet import autograd, gluon
from sklearn.datasets import load_digits

import horovod.mxnet as hvd

HELD_OUT = 360  # test images; the data set has 1,797 images


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--epochs', type=int, default=8)
    parser.add_argument('--batch-size', type=int, default=16, help='images per rank and step')
    parser.add_argument('--lr', type=float, default=0.01, help='learning rate for one rank')
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--float64', action='store_true', help='compute in double precision')
    parser.add_argument('--fp16-allreduce', action='store_true',
                        help='send gradients in half precision')
    parser.add_argument('--log', metavar='FILE', help='append one JSON line per epoch')
    return parser.parse_args()


def make_network(dtype):
    """Returns a network of two convolutions and two dense layers for images of 8 x 8 pixels. The
    first batch determines the shapes of its parameters, which are initialised then."""
    network = gluon.nn.HybridSequential()
    network.add(gluon.nn.Conv2D(16, 3, padding=1, activation='relu'),
                gluon.nn.Conv2D(32, 3, padding=1, activation='relu'),
                gluon.nn.MaxPool2D(2),
                gluon.nn.Dense(64, activation='relu'),
                gluon.nn.Dense(10))
    network.cast(dtype)
    network.initialize(mx.init.Xavier())
    network.hybridize()
    return network


def load_images(dtype):
    """Returns the training and the test images with their labels, with the same split on every
    rank."""
    digits = load_digits()
    images = (digits.images[:, None] / 16).astype(dtype)
    order = np.random.RandomState(0).permutation(len(images))
    train, held_out = order[HELD_OUT:], order[:HELD_OUT]
    return ((images[train], digits.target[train]), (images[held_out], digits.target[held_out]))


def own_batches(count, arguments, epoch):
    """Returns the indices of this rank's images, one row for each step. Image i of one shuffled
    order goes to rank i % N, so a step of N ranks sees the same images as a step of one rank with N
    times the batch size."""
    order = np.random.RandomState(arguments.seed + epoch).permutation(count)
    steps = count // (arguments.batch_size * hvd.size())
    if steps == 0:
        raise SystemExit(f'{count} images do not fill a batch of {arguments.batch_size} on each '
                         f'rank ({hvd.size()} in all): use a smaller --batch-size or fewer ranks')
    used = order[:steps * arguments.batch_size * hvd.size()]
    return used.reshape(steps, arguments.batch_size, hvd.size())[:, :, hvd.rank()]


def train_epoch(network, trainer, images, labels, batches):
    """Trains on this rank's images once; returns the mean loss over all ranks."""
    criterion = gluon.loss.SoftmaxCrossEntropyLoss()
    total = mx.nd.zeros((1,), dtype=images.dtype)
    for rows in batches:
        batch, targets = mx.nd.array(images[rows], dtype=images.dtype), mx.nd.array(labels[rows])
        with autograd.record():
            loss = criterion(network(batch), targets)
        loss.backward()
        trainer.step(len(rows))  # the batch size of this rank; hvd divides by the number of ranks
        total += loss.mean()
    return hvd.allreduce(total / len(batches), name='loss').asscalar()


def accuracy(network, images, labels):
    """Returns the fraction of correct predictions. Each rank tests a part of the images."""
    own = slice(hvd.rank(), None, hvd.size())
    answers = network(mx.nd.array(images[own], dtype=images.dtype)).asnumpy().argmax(1)
    right = mx.nd.array([(answers == labels[own]).sum()])
    return hvd.allreduce(right, op=hvd.Sum, name='right').asscalar() / len(images)


def main():
    arguments = parse_arguments()
    hvd.init()
    mx.random.seed(arguments.seed + hvd.rank())  # broadcast_parameters() makes the ranks equal
    dtype = 'float64' if arguments.float64 else 'float32'
    train, held_out = load_images(dtype)
    network = make_network(dtype)
    hvd.broadcast_parameters(network.collect_params(), root_rank=0)
    compression = hvd.Compression.fp16 if arguments.fp16_allreduce else hvd.Compression.none
    # N ranks see N times as many images in a step, so the learning rate is N times as large.
    trainer = hvd.DistributedTrainer(
        network.collect_params(), 'sgd',
        {'learning_rate': arguments.lr * hvd.size(), 'momentum': 0.9}, compression=compression)
    for epoch in range(arguments.epochs):
        batches = own_batches(len(train[0]), arguments, epoch)
        loss = train_epoch(network, trainer, *train, batches)
        share = accuracy(network, *held_out)
        if hvd.rank() == 0:
            print(f'epoch {epoch}: loss {loss:.4f}, accuracy {share:.3f}', flush=True)
            if arguments.log:
                with open(arguments.log, 'a') as log:
                    print(json.dumps({'epoch': epoch, 'loss': float(loss), 'accuracy': share}),
                          file=log)


if __name__ == '__main__':
    main()
