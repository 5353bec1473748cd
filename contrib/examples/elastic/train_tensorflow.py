#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains a small network on handwritten digits in its own loop, and continues when ranks die or
join.

    srun --hvd=elastic python3 train_tensorflow.py
    hvdrun -np 4 --min-np 1 python3 train_tensorflow.py

Kill one of the ranks: the others return to their last commit, divide the rest of the epoch among
themselves, and end as they would have. A step sees the same images for any number of ranks, each
rank its share of them, so the learning rate does not depend on that number.
"""

import os

import digits
import numpy as np
import tensorflow as tf

import horovod.tensorflow as hvd


def steps_left(state, data, arguments):
    """This rank's images and labels for each remaining step of the epoch."""
    images, labels = data
    order = np.random.default_rng([arguments.seed, state.epoch]).permutation(len(images))
    size = arguments.batch_size
    for step in range(state.batch, len(images) // size):
        mine = order[step * size:(step + 1) * size][hvd.rank()::hvd.size()]
        yield images[mine], labels[mine]


def make_step(model, optimizer, arguments):
    """The function that takes a step. It stays valid when the ranks change, because they are looked
    up when it runs."""
    @tf.function(input_signature=[tf.TensorSpec((None, 64), tf.float32),
                                  tf.TensorSpec((None,), tf.int64)])
    def step(images, labels):
        with tf.GradientTape() as tape:
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(
                labels, model(images, training=True))
            loss = tf.reduce_sum(losses) / arguments.batch_size
        # The sum over the ranks: every image has the same weight, also if they do not divide evenly.
        tape = hvd.DistributedGradientTape(tape, op=hvd.Sum)
        weights = model.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights))

    return step


def accuracy(model, data):
    """The share of correct predictions; each rank tests its part of the images."""
    images, labels = (part[hvd.rank()::hvd.size()] for part in data)
    right = np.sum(np.argmax(model(images), 1) == labels)
    return float(hvd.allreduce(tf.constant(right), op=hvd.Sum, name='right')) / len(data[0])


@hvd.elastic.run
def train(state, step, data, held_out, arguments):
    while state.epoch < arguments.epochs:
        for images, labels in steps_left(state, data, arguments):
            step(images, labels)
            state.batch += 1
            if state.batch % arguments.commit_every == 0:
                state.commit()
        share = accuracy(state.model, held_out)
        if hvd.rank() == 0:
            print(f'epoch {state.epoch + 1:2d}  accuracy {share:.4f}  {hvd.size()} ranks on '
                  f'{hvd.cross_size()} nodes', flush=True)
        state.epoch += 1
        state.batch = 0
        state.commit()


def use_own_processors():
    """One GPU per rank if there are GPUs, and a share of the cores."""
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
        f'rank {hvd.rank()} begins anew, one of {hvd.size()}', flush=True)])
    train(state, make_step(model, optimizer, arguments), data, held_out, arguments)
    hvd.shutdown()


if __name__ == '__main__':
    main()
