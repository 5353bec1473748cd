#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains a small Keras network with model.fit, and continues when ranks die or join.

    srun --hvd=elastic python3 train_keras.py
    hvdrun -np 4 --min-np 1 python3 train_keras.py

It needs Keras 2 or 3, on TensorFlow or, with KERAS_BACKEND=torch, on torch.

Kill one of the ranks: the others return to their last commit, divide the rest of the epoch among
themselves, and finish the training. A step has the same images for any number of ranks, divided
among them, so the learning rate does not change with that number.

The images come with scikit-learn: pip install scikit-learn
"""

import digits
import keras
import numpy as np

import horovod.keras as hvd


def remaining_images(state, images, arguments):
    """Returns the indices of this rank's images for the remaining steps of the epoch, and the
    number of these images in each step."""
    order = np.random.default_rng([arguments.seed, state.epoch]).permutation(len(images))
    steps = order[:len(order) // arguments.batch_size * arguments.batch_size].reshape(
        -1, arguments.batch_size)
    mine = steps[state.batch:, hvd.rank()::hvd.size()]
    return mine.ravel(), mine.shape[1]


class Report(keras.callbacks.Callback):
    """Prints a line for each epoch."""

    def on_epoch_end(self, epoch, logs=None):
        if hvd.rank() == 0:
            print(f'epoch {epoch + 1:2d}  accuracy {logs["val_accuracy"]:.4f}  '
                  f'{digits.count(hvd.size(), "rank")} on '
                  f'{digits.count(hvd.cross_size(), "node")}', flush=True)


@hvd.elastic.run
def train(state, data, held_out, arguments):
    """Trains from the state of the last commit to the end. hvd calls this function again when ranks
    have died or joined."""
    callbacks = [hvd.callbacks.MetricAverageCallback(),
                 Report(),
                 hvd.elastic.UpdateEpochStateCallback(state),
                 hvd.elastic.UpdateBatchStateCallback(state),
                 # Keep this one last: it commits the state that the other callbacks update.
                 hvd.elastic.CommitStateCallback(state, arguments.commit_every)]
    part = slice(hvd.rank(), None, hvd.size())
    while state.epoch < arguments.epochs:
        # Train one epoch at a time. fit cannot start in the middle of an epoch, so after a
        # restart it gets only the rest of the epoch's images.
        mine, batch_size = remaining_images(state, data[0], arguments)
        if len(mine) == 0:  # the last commit was after the last batch of an epoch
            state.epoch, state.batch = state.epoch + 1, 0
            continue
        state.model.fit(data[0][mine], data[1][mine], batch_size=batch_size, shuffle=False,
                        initial_epoch=state.epoch, epochs=state.epoch + 1,
                        validation_data=(held_out[0][part], held_out[1][part]),
                        callbacks=callbacks, verbose=0)


def main():
    arguments = digits.parse_arguments(__doc__.splitlines()[0])
    hvd.init()
    keras.utils.set_random_seed(arguments.seed)
    data, held_out = digits.load_images()
    model = keras.Sequential([keras.layers.InputLayer((64,)),
                              keras.layers.Dense(128, activation='relu'),
                              keras.layers.Dense(10)])
    optimizer = hvd.DistributedOptimizer(keras.optimizers.SGD(arguments.lr, momentum=0.9))
    model.compile(optimizer=optimizer, metrics=['accuracy'],
                  loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    state = hvd.elastic.KerasState(model, epoch=0, batch=0)
    state.register_reset_callbacks([lambda: print(
        f'rank {hvd.rank()} of {hvd.size()} restarts', flush=True)])
    train(state, data, held_out, arguments)
    hvd.shutdown()


if __name__ == '__main__':
    main()
