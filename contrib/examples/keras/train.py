#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains a small Keras network on the handwritten digits that ship with scikit-learn.

The same script runs alone, on one machine, and in a Slurm job:

    python3 train.py
    hvdrun -np 4 python3 train.py
    srun --hvd python3 train.py

It needs Keras 2 or 3, on TensorFlow or, with KERAS_BACKEND=torch, on torch.

The images come with scikit-learn: pip install scikit-learn
"""

import argparse
import glob
import json
import os

import keras
from sklearn.datasets import load_digits

import horovod.keras as hvd
from horovod.keras import callbacks

HELD_OUT = 360  # test images; the data set has 1,797 images


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--epochs', type=int, default=8)
    parser.add_argument('--batch-size', type=int, default=16, help='images per rank and step')
    parser.add_argument('--lr', type=float, default=0.02, help='learning rate for one rank')
    parser.add_argument('--warmup-epochs', type=int, default=2)
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--fp16-allreduce', action='store_true', help='send gradients in half '
                        'precision')
    parser.add_argument('--checkpoint', metavar='DIR', help='save a checkpoint here after each '
                        'epoch, and continue from the newest one that is there')
    parser.add_argument('--log', metavar='FILE', help='append one JSON line per epoch')
    return parser.parse_args()


def load_images():
    """Returns this rank's training images and its part of the test images, as pairs with labels.
    All ranks get the same number of images, because every step needs all ranks."""
    digits = load_digits()
    images = (digits.images / 16).astype('float32')[..., None]
    parts = []
    for part in (slice(HELD_OUT, None), slice(HELD_OUT)):
        count = len(images[part]) // hvd.size() * hvd.size()
        mine = slice(hvd.rank(), count, hvd.size())
        parts.append((images[part][mine], digits.target[part][mine]))
    return parts


def make_model(arguments, compression):
    model = keras.Sequential([
        keras.layers.InputLayer((8, 8, 1)),
        keras.layers.Conv2D(16, 3, padding='same', activation='relu'),
        keras.layers.MaxPooling2D(),
        keras.layers.Flatten(),
        keras.layers.Dense(64, activation='relu'),
        keras.layers.Dense(10)])
    # N ranks see N times as many images in a step, so the learning rate is N times as large.
    optimizer = keras.optimizers.SGD(arguments.lr * hvd.size(), momentum=0.9)
    model.compile(optimizer=hvd.DistributedOptimizer(optimizer, compression=compression),
                  loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
                  metrics=['accuracy'])
    return model


def resume(arguments, compression):
    """Returns the model and the number of epochs that it has been trained. Only rank 0 reads the
    checkpoint; the other ranks get its weights when training begins."""
    newest = ''
    if arguments.checkpoint and hvd.rank() == 0:
        newest = max(glob.glob(os.path.join(arguments.checkpoint, 'epoch-*.keras')), default='')
    done = int(os.path.basename(newest)[6:9]) if newest else 0
    done = int(hvd.broadcast(done, root_rank=0, name='epoch'))
    if newest:
        return hvd.load_model(newest, compression=compression), done
    return make_model(arguments, compression), done


class Save(keras.callbacks.Callback):
    """Saves the model after each epoch. Writes a new file and renames it, so that a checkpoint is
    always complete."""

    def __init__(self, directory):
        super().__init__()
        self._directory = directory
        os.makedirs(directory, exist_ok=True)

    def on_epoch_end(self, epoch, logs=None):
        beside = os.path.join(self._directory, 'new.keras')
        self.model.save(beside)
        os.replace(beside, os.path.join(self._directory, f'epoch-{epoch + 1:03d}.keras'))


class Log(keras.callbacks.Callback):
    """Appends a JSON line for each epoch."""

    def __init__(self, path):
        super().__init__()
        self._path = path

    def on_epoch_end(self, epoch, logs=None):
        facts = {'epoch': epoch + 1, 'ranks': hvd.size(), **(logs or {})}
        with open(self._path, 'a') as file:
            file.write(json.dumps(facts, default=float) + '\n')


def make_callbacks(arguments):
    rate = arguments.lr * hvd.size()
    chosen = [
        # All ranks start with the weights of rank 0.
        callbacks.BroadcastGlobalVariablesCallback(0),
        # Must come before all callbacks that read metrics.
        callbacks.MetricAverageCallback(),
        # Raise the learning rate from that of one rank to that of all ranks. In the last third of
        # the epochs, reduce it to a quarter.
        callbacks.LearningRateWarmupCallback(rate, warmup_epochs=arguments.warmup_epochs,
                                             verbose=1),
        callbacks.LearningRateScheduleCallback(
            rate, lambda epoch: 0.25 if epoch >= arguments.epochs * 2 // 3 else 1.0,
            start_epoch=arguments.warmup_epochs)]
    if hvd.rank() == 0:
        chosen += [Save(arguments.checkpoint)] if arguments.checkpoint else []
        chosen += [Log(arguments.log)] if arguments.log else []
    return chosen


def main():
    arguments = parse_arguments()
    hvd.init()
    keras.utils.set_random_seed(arguments.seed + hvd.rank())  # rank 0's weights are broadcast
    compression = hvd.Compression.fp16 if arguments.fp16_allreduce else hvd.Compression.none
    (images, labels), held_out = load_images()
    model, done = resume(arguments, compression)
    model.fit(images, labels, batch_size=arguments.batch_size, epochs=arguments.epochs,
              initial_epoch=done, validation_data=held_out, callbacks=make_callbacks(arguments),
              verbose=2 if hvd.rank() == 0 else 0)
    hvd.shutdown()


if __name__ == '__main__':
    main()
