# SPDX-License-Identifier: Apache-2.0
"""Code that train_keras.py and train_tensorflow.py share: their options, and the handwritten digits
that ship with scikit-learn."""

import argparse

import numpy as np
from sklearn.datasets import load_digits

HELD_OUT = 360  # test images; the data set has 1,797 images


def parse_arguments(description):
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument('--epochs', type=int, default=12)
    parser.add_argument('--batch-size', type=int, default=48,
                        help='images per step, on all ranks together')
    parser.add_argument('--lr', type=float, default=0.04, help='learning rate')
    parser.add_argument('--commit-every', type=int, default=5, metavar='N',
                        help='commit after every N batches')
    parser.add_argument('--seed', type=int, default=1)
    return parser.parse_args()


def count(number, noun):
    """Returns such as "1 node" or "2 nodes"."""
    return f'{number} {noun}' + ('' if number == 1 else 's')


def load_images():
    """Returns the training and the test images with their labels, with the same split on every
    rank."""
    digits = load_digits()
    images = (digits.images / 16).astype('float32').reshape(-1, 64)
    order = np.random.default_rng(0).permutation(len(images))
    train, held_out = order[HELD_OUT:], order[:HELD_OUT]
    return (images[train], digits.target[train]), (images[held_out], digits.target[held_out])
