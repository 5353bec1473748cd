# SPDX-License-Identifier: Apache-2.0
"""Trains with MultiWorkerMirroredStrategy, over TensorFlow's own collectives."""

import tensorflow as tf

import horovod.tensorflow as hvd
import tiny

hvd.init()
resolver = hvd.ClusterResolver()
strategy = tf.distribute.MultiWorkerMirroredStrategy(cluster_resolver=resolver)
rank = resolver.task_id
with strategy.scope():
    weights = tf.Variable(tf.zeros([4]))


@tf.function
def step():
    def descend():
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum((weights - float(rank))**2)
        mean = tf.distribute.get_replica_context().all_reduce(
            tf.distribute.ReduceOp.MEAN, tape.gradient(loss, weights))
        weights.assign_sub(0.1 * mean)

    strategy.run(descend)


for _ in range(3):
    step()
tiny.tell(rank, strategy.num_replicas_in_sync, resolver.rpc_layer, weights.numpy())
