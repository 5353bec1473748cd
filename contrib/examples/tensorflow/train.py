#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains a small network on handwritten digits in a loop of its own, with a gradient tape.

The same script runs alone, on one machine, and in a Slurm job:

    python3 train.py
    hvdrun -np 4 python3 train.py
    srun --hvd python3 train.py

It works with Keras 2 and 3.

The images come with scikit-learn: pip install scikit-learn
"""

import digits
import tensorflow as tf

import horovod.tensorflow as hvd


def parse_arguments():
    options = digits.parser(__doc__.splitlines()[0])
    options.add_argument('--checkpoint', metavar='DIR', help='save a checkpoint here after each '
                         'epoch, and continue from the newest one that is there')
    options.add_argument('--float64', action='store_true', help='compute in double precision')
    options.add_argument('--fp16-allreduce', action='store_true', help='send gradients in half '
                         'precision')
    return options.parse_args()


def make_model():
    return tf.keras.Sequential([
        tf.keras.layers.InputLayer((8, 8, 1)),
        tf.keras.layers.Conv2D(16, 3, padding='same', activation='relu'),
        tf.keras.layers.MaxPooling2D(),
        tf.keras.layers.Flatten(),
        tf.keras.layers.Dense(64, activation='relu'),
        tf.keras.layers.Dense(10)])


def variables_of(optimizer):
    """Returns the variables of the optimizer, which are a list in Keras 3 and a method in Keras
    2."""
    return optimizer.variables() if callable(optimizer.variables) else optimizer.variables


def make_step(model, optimizer, compression):
    """Returns a function that takes a training step with a batch and returns this rank's loss."""
    @tf.function
    def step(images, labels):
        with tf.GradientTape() as tape:
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels,
                                                                    model(images, training=True))
            loss = tf.reduce_mean(losses)
        tape = hvd.DistributedGradientTape(tape, compression=compression)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        return loss

    return step


def resume(directory, model, optimizer):
    """Restores the newest checkpoint on rank 0 and broadcasts its weights, so that all ranks start
    with the same ones. Returns the checkpoint manager (None on other ranks), and a variable with
    the number of finished epochs."""
    done = tf.Variable(0, dtype=tf.int64)
    manager = None
    if directory and hvd.rank() == 0:
        manager = tf.train.CheckpointManager(
            tf.train.Checkpoint(model=model, optimizer=optimizer, done=done), directory,
            max_to_keep=3)
        optimizer.build(model.trainable_variables)
        manager.restore_or_initialize()
    hvd.broadcast_variables([done, *model.variables], root_rank=0)
    return manager, done


def accuracy(model, images, labels):
    """Returns the fraction of correct predictions. Each rank tests a part of the images."""
    mine, right = digits.own_part(images, labels)
    answers = tf.argmax(model(mine), 1)
    count = tf.reduce_sum(tf.cast(answers == right, tf.float32))
    return float(hvd.allreduce(count, op=hvd.Sum, name='right')) / len(images)


def train_epoch(step, images, labels, batches, after_first):
    """Trains on this rank's images once; returns the mean loss over all ranks. Calls
    ``after_first`` after the first step."""
    total = 0.0
    for index, rows in enumerate(batches):
        total += step(tf.constant(images[rows]), tf.constant(labels[rows]))
        if index == 0:
            after_first()
    return float(hvd.allreduce(total / len(batches), name='loss'))


def main():
    arguments = parse_arguments()
    hvd.init()
    digits.choose_gpu()
    tf.keras.utils.set_random_seed(arguments.seed + hvd.rank())  # resume() makes the weights equal
    dtype = 'float64' if arguments.float64 else 'float32'
    tf.keras.backend.set_floatx(dtype)
    (images, labels), held_out = digits.load_images(dtype)
    model = make_model()
    # N ranks see N times as many images in a step, so the learning rate is N times as large.
    optimizer = tf.keras.optimizers.SGD(arguments.lr * hvd.size(), momentum=0.9)
    manager, done = resume(arguments.checkpoint, model, optimizer)
    step = make_step(model, optimizer, hvd.Compression.fp16 if arguments.fp16_allreduce
                     else hvd.Compression.none)

    def broadcast_all():
        """Broadcasts all variables after the first step, when the optimizer has created its
        own."""
        hvd.broadcast_variables([*model.variables, *variables_of(optimizer)], root_rank=0)

    begun = int(done)
    for epoch in range(begun, arguments.epochs):
        loss = train_epoch(step, images, labels, digits.own_batches(len(images), arguments, epoch),
                           broadcast_all if epoch == begun else lambda: None)
        done.assign(epoch + 1)
        digits.report(arguments.log, epoch + 1, loss, accuracy(model, *held_out))
        if manager:
            manager.save()
    hvd.shutdown()


if __name__ == '__main__':
    main()
