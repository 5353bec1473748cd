#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains a small network with JAX and optax on the handwritten digits that ship with scikit-learn.

The same script runs alone, on one machine, and in a Slurm job:

    python3 digits.py
    hvdrun -np 4 python3 digits.py
    srun --hvd python3 digits.py

The images come with scikit-learn: pip install scikit-learn
"""

import argparse
import json

import jax
import jax.numpy as jnp
import numpy as np
import optax
from sklearn.datasets import load_digits

import horovod.jax as hvd

HELD_OUT = 360  # test images; the data set has 1,797 images


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--epochs', type=int, default=8)
    parser.add_argument('--batch-size', type=int, default=16, help='images per rank and step')
    parser.add_argument('--lr', type=float, default=0.05, help='learning rate for one rank')
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--float64', action='store_true', help='compute in double precision')
    parser.add_argument('--fp16-allreduce', action='store_true',
                        help='send gradients in half precision')
    parser.add_argument('--log', metavar='FILE', help='append one JSON line per epoch')
    return parser.parse_args()


def make_parameters(seed, dtype):
    """Returns the weights and biases of two dense layers."""
    first, second = jax.random.split(jax.random.key(seed))
    return [(jax.random.normal(first, (64, 64), dtype) / 8, jnp.zeros(64, dtype)),
            (jax.random.normal(second, (64, 10), dtype) / 8, jnp.zeros(10, dtype))]


def network(parameters, images):
    (weights, biases), (last_weights, last_biases) = parameters
    return jax.nn.relu(images @ weights + biases) @ last_weights + last_biases


def mean_loss(parameters, images, labels):
    return optax.softmax_cross_entropy_with_integer_labels(network(parameters, images),
                                                           labels).mean()


def load_images(dtype):
    """Returns the training and the test images with their labels, with the same split on every
    rank."""
    digits = load_digits()
    images = (digits.data / 16).astype(dtype)
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


def make_step(optimizer):
    @jax.jit
    def step(parameters, state, images, labels):
        loss, gradients = jax.value_and_grad(mean_loss)(parameters, images, labels)
        updates, state = optimizer.update(gradients, state, parameters)
        return optax.apply_updates(parameters, updates), state, loss
    return step


def accuracy(parameters, images, labels):
    """Returns the fraction of correct predictions. Each rank tests a part of the images."""
    own = slice(hvd.rank(), None, hvd.size())
    right = (network(parameters, images[own]).argmax(1) == labels[own]).sum()
    return float(hvd.allreduce(right, op=hvd.Sum, name='right')) / len(images)


def main():
    arguments = parse_arguments()
    hvd.init()
    jax.config.update('jax_enable_x64', arguments.float64)
    dtype = 'float64' if arguments.float64 else 'float32'
    (images, labels), held_out = load_images(dtype)
    parameters = hvd.broadcast_parameters(make_parameters(arguments.seed + hvd.rank(), dtype))
    compression = hvd.Compression.fp16 if arguments.fp16_allreduce else hvd.Compression.none
    # N ranks see N times as many images in a step, so the learning rate is N times as large.
    optimizer = hvd.DistributedOptimizer(optax.sgd(arguments.lr * hvd.size(), momentum=0.9),
                                         compression=compression)
    state, step = optimizer.init(parameters), make_step(optimizer)
    for epoch in range(arguments.epochs):
        losses = []
        for rows in own_batches(len(images), arguments, epoch):
            parameters, state, loss = step(parameters, state, images[rows], labels[rows])
            losses.append(loss)
        loss = float(hvd.allreduce(jnp.stack(losses).mean(), name='loss'))
        share = accuracy(parameters, *held_out)
        if hvd.rank() == 0:
            print(f'epoch {epoch}: loss {loss:.4f}, accuracy {share:.3f}', flush=True)
            if arguments.log:
                with open(arguments.log, 'a') as log:
                    print(json.dumps({'epoch': epoch, 'loss': loss, 'accuracy': share}), file=log)


if __name__ == '__main__':
    main()
