# SPDX-License-Identifier: Apache-2.0
"""Code that the examples share: their options, the handwritten digits that ship with scikit-learn,
divided among the ranks, and the report of an epoch."""

import argparse
import json

import numpy as np
import tensorflow as tf
from sklearn.datasets import load_digits

import horovod.tensorflow as hvd

HELD_OUT = 360  # test images; the data set has 1,797 images


def parser(description):
    """Returns a parser with the options that all examples have."""
    options = argparse.ArgumentParser(description=description)
    options.add_argument('--epochs', type=int, default=8)
    options.add_argument('--batch-size', type=int, default=16, help='images per rank and step')
    options.add_argument('--lr', type=float, default=0.02, help='learning rate for one rank')
    options.add_argument('--seed', type=int, default=1)
    options.add_argument('--log', metavar='FILE', help='append one JSON line per epoch')
    return options


def choose_gpu():
    """Limits TensorFlow to this rank's GPU if there are GPUs."""
    gpus = tf.config.list_physical_devices('GPU')
    if gpus:
        tf.config.set_visible_devices(gpus[hvd.local_rank() % len(gpus)], 'GPU')


def load_images(dtype):
    """Returns the training and the test images with their labels, with the same split on every
    rank: arrays [image, row, column, 1] and [image]."""
    digits = load_digits()
    images = (digits.images[..., None] / 16).astype(dtype)
    order = np.random.RandomState(0).permutation(len(images))
    train, held_out = order[HELD_OUT:], order[:HELD_OUT]
    return ((images[train], digits.target[train]), (images[held_out], digits.target[held_out]))


def own_part(images, labels):
    """Returns this rank's part of the test images."""
    return images[hvd.rank()::hvd.size()], labels[hvd.rank()::hvd.size()]


def own_batches(count, arguments, epoch):
    """Returns the indices of this rank's images, one row for each step. Image i of one shuffled
    order goes to rank i % N, so a step of N ranks sees the same images as a step of one rank with N
    times the batch size."""
    together = arguments.batch_size * hvd.size()
    steps = count // together
    if steps == 0:
        raise SystemExit(f'{count} images do not fill a batch of {arguments.batch_size} on each '
                         f'rank ({hvd.size()} in all): use a smaller --batch-size or fewer ranks')
    order = np.random.RandomState(arguments.seed + epoch).permutation(count)[:steps * together]
    return order.reshape(steps, arguments.batch_size, hvd.size())[:, :, hvd.rank()]


def report(log, epoch, loss, accuracy):
    """Prints and logs the results of an epoch on rank 0; epochs count from 1."""
    if hvd.rank() != 0:
        return
    print(f'epoch {epoch:2d}  loss {loss:.4f}  accuracy {accuracy:.4f}', flush=True)
    if log:
        with open(log, 'a') as file:
            print(json.dumps({'epoch': epoch, 'loss': float(loss), 'accuracy': float(accuracy),
                              'ranks': hvd.size()}), file=file)
