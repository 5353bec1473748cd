#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains a small network in a loop of its own, and continues when ranks die or join.

    srun --hvd=elastic python3 train_tensorflow.py
    hvdrun -np 4 --min-np 1 python3 train_tensorflow.py

Kill one of the ranks: the others return to their last commit, divide the rest of the epoch among
themselves, and finish the training. A step has the same images for any number of ranks, divided
among them, so the learning rate does not change with that number.

The images come with scikit-learn: pip install scikit-learn
"""

import os

import digits
import numpy as np
import tensorflow as tf

import horovod.tensorflow as hvd


def steps_left(state, data, arguments):
    """Yields this rank's images and labels for each remaining step of the epoch."""
    images, labels = data
    order = np.random.default_rng([arguments.seed, state.epoch]).permutation(len(images))
    size = arguments.batch_size
    for step in range(state.batch, len(images) // size):
        mine = order[step * size:(step + 1) * size][hvd.rank()::hvd.size()]
        yield images[mine], labels[mine]


def make_step(model, optimizer, arguments):
    """Returns a function that takes a training step. It need not be traced again when the ranks
    change, because the graph looks them up each time it runs."""
    @tf.function(input_signature=[tf.TensorSpec((None, 64), tf.float32),
                                  tf.TensorSpec((None,), tf.int64)])
    def step(images, labels):
        with tf.GradientTape() as tape:
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(
                labels, model(images, training=True))
            loss = tf.reduce_sum(losses) / arguments.batch_size
        # Each rank divides by the whole batch size, and the ranks add up their gradients. So every
        # image has the same weight, even if ranks have different numbers of images.
        tape = hvd.DistributedGradientTape(tape, op=hvd.Sum)
        weights = model.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights))

    return step


def accuracy(model, data):
    """Returns the fraction of correct predictions. Each rank tests a part of the images."""
    images, labels = (part[hvd.rank()::hvd.size()] for part in data)
    right = np.sum(np.argmax(model(images), 1) == labels)
    return float(hvd.allreduce(tf.constant(right), op=hvd.Sum, name='right')) / len(data[0])


@hvd.elastic.run
def train(state, step, data, held_out, arguments):
    """Trains from the state of the last commit to the end. hvd calls this function again when ranks
    have died or joined."""
    while state.epoch < arguments.epochs:
        for images, labels in steps_left(state, data, arguments):
            step(images, labels)
            state.batch += 1
            if state.batch % arguments.commit_every == 0:
                state.commit()
        share = accuracy(state.model, held_out)
        if hvd.rank() == 0:
            print(f'epoch {state.epoch + 1:2d}  accuracy {share:.4f}  '
                  f'{digits.count(hvd.size(), "rank")} on '
                  f'{digits.count(hvd.cross_size(), "node")}', flush=True)
        state.epoch += 1
        state.batch = 0
        state.commit()


def use_own_processors():
    """Limits TensorFlow to this rank's GPU, if there are GPUs, and to its share of the cores."""
    gpus = tf.config.list_physical_devices('GPU')
    tf.config.set_visible_devices(gpus[hvd.local_rank():hvd.local_rank() + 1], 'GPU')
    cores = max(1, len(os.sched_getaffinity(0)) // hvd.local_size())
    tf.config.threading.set_intra_op_parallelism_threads(cores)


def main():
    arguments = digits.parse_arguments(__doc__.splitlines()[0])
    hvd.init()
    use_own_processors()
    tf.keras.utils.set_random_seed(arguments.seed)
    data, held_out = digits.load_images()
    model = tf.keras.Sequential([tf.keras.layers.InputLayer((64,)),
                                 tf.keras.layers.Dense(128, activation='relu'),
                                 tf.keras.layers.Dense(10)])
    optimizer = tf.keras.optimizers.SGD(arguments.lr, momentum=0.9)
    state = hvd.elastic.TensorFlowKerasState(model, optimizer, epoch=0, batch=0)
    state.register_reset_callbacks([lambda: print(
        f'rank {hvd.rank()} of {hvd.size()} restarts', flush=True)])
    train(state, make_step(model, optimizer, arguments), data, held_out, arguments)
    hvd.shutdown()


if __name__ == '__main__':
    main()
