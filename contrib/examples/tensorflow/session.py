#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains a small network in the style of TensorFlow 1, with a graph, a session and hooks.

The same script runs alone, on one machine, and in a Slurm job:

    python3 session.py
    hvdrun -np 4 python3 session.py
    srun --hvd python3 session.py

The images come with scikit-learn: pip install scikit-learn
"""

import digits
import tensorflow as tf

import horovod.tensorflow as hvd

tf1 = tf.compat.v1


def parse_arguments():
    options = digits.parser(__doc__.splitlines()[0])
    options.add_argument('--checkpoint', metavar='DIR', help='save a checkpoint here after each '
                         'epoch, and continue from the newest one that is there')
    options.add_argument('--float64', action='store_true', help='compute in double precision')
    return options.parse_args()


def layer(name, inputs, outputs):
    """Returns the outputs of a dense layer without an activation."""
    shape = (inputs.shape[1], outputs)
    weights = tf1.get_variable(f'{name}/weights', shape, inputs.dtype,
                               tf1.glorot_uniform_initializer())
    bias = tf1.get_variable(f'{name}/bias', (outputs,), inputs.dtype, tf1.zeros_initializer())
    return inputs @ weights + bias


class Graph:
    """The network, its training step and the metrics, in the default graph."""

    def __init__(self, arguments):
        dtype = tf.float64 if arguments.float64 else tf.float32
        self.images = tf1.placeholder(dtype, (None, 8, 8, 1))
        self.labels = tf1.placeholder(tf.int64, (None,))
        hidden = tf.nn.relu(layer('hidden', tf.reshape(self.images, (-1, 64)), 64))
        logits = layer('answer', hidden, 10)
        self.loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(
            labels=self.labels, logits=logits))
        right = tf.cast(tf.equal(tf.argmax(logits, 1), self.labels), tf.float32)
        # Results over all ranks. All ranks must run these nodes at the same point of the script.
        self.right = hvd.allreduce(tf.reduce_sum(right), op=hvd.Sum, name='right')
        self.own_loss = tf1.placeholder(tf.float64, ())
        self.mean_loss = hvd.allreduce(self.own_loss, name='loss')

        optimizer = tf1.train.MomentumOptimizer(arguments.lr * hvd.size(), 0.9)
        self.step = tf1.train.get_or_create_global_step()
        self.train = hvd.DistributedOptimizer(optimizer).minimize(self.loss, self.step)

    def feed(self, images, labels):
        return {self.images: images, self.labels: labels}


def train_epoch(session, graph, images, labels, batches):
    """Trains on this rank's images once; returns the mean loss over all ranks."""
    total = 0.0
    for rows in batches:
        total += session.run([graph.loss, graph.train], graph.feed(images[rows], labels[rows]))[0]
    return session.run(graph.mean_loss, {graph.own_loss: total / len(batches)})


def main():
    arguments = parse_arguments()
    hvd.init()
    digits.choose_gpu()
    tf1.disable_eager_execution()
    tf1.set_random_seed(arguments.seed + hvd.rank())  # the session's hook makes the weights equal
    (images, labels), held_out = digits.load_images('float64' if arguments.float64 else 'float32')
    steps = len(digits.own_batches(len(images), arguments, 0))
    graph = Graph(arguments)
    # Only rank 0 saves and restores checkpoints. The hook then broadcasts its variables.
    directory = arguments.checkpoint if hvd.rank() == 0 else None
    with tf1.train.MonitoredTrainingSession(
            checkpoint_dir=directory, hooks=[hvd.BroadcastGlobalVariablesHook(0)],
            save_checkpoint_steps=steps, save_summaries_steps=None, save_summaries_secs=None,
            log_step_count_steps=None) as session:
        for epoch in range(session.run(graph.step) // steps, arguments.epochs):
            loss = train_epoch(session, graph, images, labels,
                               digits.own_batches(len(images), arguments, epoch))
            right = session.run(graph.right, graph.feed(*digits.own_part(*held_out)))
            digits.report(arguments.log, epoch + 1, loss, right / len(held_out[0]))
    hvd.shutdown()


if __name__ == '__main__':
    main()
