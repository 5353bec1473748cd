#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains a small network on handwritten digits with tf.keras and a data set of tf.data.

    hvdrun -np 4 python3 fit.py --accumulate 2 --best best.keras

In addition to ../keras/train.py it shows the package horovod.tensorflow.keras, a sharded data set,
gradients that accumulate over several batches before the ranks average them, and how to save the
model of the best epoch.

The images come with scikit-learn: pip install scikit-learn
"""

import digits
import tensorflow as tf

import horovod.tensorflow.keras as hvd
from horovod.tensorflow.keras import callbacks


def parse_arguments():
    options = digits.parser(__doc__.splitlines()[0])
    options.add_argument('--accumulate', type=int, default=1, metavar='N', help='batches per step')
    options.add_argument('--best', metavar='FILE.keras',
                         help='save the model of the best epoch here')
    return options.parse_args()


def training_set(images, labels, arguments):
    """Returns this rank's batches and their number in an epoch. The number is the same on all
    ranks, because every step needs all ranks."""
    steps = len(images) // (arguments.batch_size * hvd.size())
    if steps < arguments.accumulate:
        raise SystemExit(f'{steps} batches an epoch do not make a step of {arguments.accumulate}: '
                         'use a smaller --batch-size or fewer ranks')
    batches = tf.data.Dataset.from_tensor_slices((images, labels))
    batches = batches.shard(hvd.size(), hvd.rank()).shuffle(len(images)).repeat()
    return batches.batch(arguments.batch_size).prefetch(1), steps


def make_model(arguments):
    model = tf.keras.Sequential([
        tf.keras.layers.InputLayer((8, 8, 1)),
        tf.keras.layers.Conv2D(16, 3, padding='same', activation='relu'),
        tf.keras.layers.MaxPooling2D(),
        tf.keras.layers.Flatten(),
        tf.keras.layers.Dense(64, activation='relu'),
        tf.keras.layers.Dense(10)])
    optimizer = tf.keras.optimizers.SGD(arguments.lr * hvd.size(), momentum=0.9)
    optimizer = hvd.DistributedOptimizer(optimizer, backward_passes_per_step=arguments.accumulate,
                                         average_aggregated_gradients=True)
    model.compile(optimizer=optimizer, metrics=['accuracy'],
                  loss=tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return model


class Report(tf.keras.callbacks.Callback):
    """Prints the results of each epoch."""

    def __init__(self, log):
        super().__init__()
        self._log = log

    def on_epoch_end(self, epoch, logs=None):
        digits.report(self._log, epoch + 1, logs['loss'], logs['val_accuracy'])


def main():
    arguments = parse_arguments()
    hvd.init()
    digits.choose_gpu()
    tf.keras.utils.set_random_seed(arguments.seed + hvd.rank())
    (images, labels), held_out = digits.load_images('float32')
    batches, steps = training_set(images, labels, arguments)
    model = make_model(arguments)
    chosen = [callbacks.BroadcastGlobalVariablesCallback(0), callbacks.MetricAverageCallback(),
              Report(arguments.log)]
    keeps = arguments.best and hvd.rank() == 0
    if keeps:
        # After MetricAverageCallback in the list, so that it sees the accuracy over all ranks.
        chosen.append(callbacks.BestModelCheckpoint(monitor='val_accuracy', mode='max',
                                                    filepath=arguments.best))
    model.fit(batches, steps_per_epoch=steps, epochs=arguments.epochs, verbose=0, shuffle=False,
              validation_data=digits.own_part(*held_out), callbacks=chosen)
    if keeps:
        share = tf.keras.models.load_model(arguments.best).evaluate(*held_out, verbose=0)[1]
        print(f'the best model: accuracy {share:.4f}', flush=True)
    hvd.shutdown()


if __name__ == '__main__':
    main()
