# SPDX-License-Identifier: Apache-2.0
"""SyncBatchNormalization: normalises with the statistics of the batches of all ranks."""

import tensorflow as tf

from horovod.common.basics import Sum
from horovod.common.process_sets import global_process_set
from horovod.tensorflow.collectives.allreduce import allreduce
from horovod.tensorflow.collectives.nodes import may_have_others

_IS_KERAS_3 = tf.keras.__version__.startswith('3.') if hasattr(tf.keras, '__version__') else False


def _over_all_ranks(mean, variance, count):
    """Combines the means and variances of all ranks, weighted by their counts."""
    wide = tf.float32 if mean.dtype in (tf.float16, tf.bfloat16) else mean.dtype
    own_mean, own_variance = tf.cast(mean, wide), tf.cast(variance, wide)
    count = tf.reshape(tf.cast(count, wide), [1])
    sums = tf.concat([tf.reshape(each, [-1]) * count
                      for each in (own_mean, own_variance + tf.square(own_mean))], 0)
    sums = allreduce(tf.concat([sums, count], 0), op=Sum)
    new_mean, square = tf.split(sums[:-1] / tf.maximum(sums[-1], 1), 2)
    new_variance = tf.maximum(square - tf.square(new_mean), 0)
    return tuple(tf.cast(tf.reshape(new, tf.shape(old)), old.dtype)
                 for new, old in ((new_mean, mean), (new_variance, variance)))


class SyncBatchNormalization(tf.keras.layers.BatchNormalization):
    """Keras's BatchNormalization with the statistics of the batches of all ranks, for batches that
    are too small on each rank. Takes the same arguments; ValueError for fused=True."""

    def __init__(self, fused=False, **kwargs):
        if fused in (True, None):
            raise ValueError('SyncBatchNormalization does not support fused=True.')
        super().__init__(**kwargs, **({} if _IS_KERAS_3 else {'fused': False}))

    def _moments(self, inputs, *args, **kwargs):
        """Returns mean and variance over all ranks. Keras calls this in training, with (inputs,
        mask) in Keras 3 and with the axes before the mask in Keras 2."""
        mean, variance = super()._moments(inputs, *args, **kwargs)
        if not may_have_others(global_process_set):
            return mean, variance
        mask = kwargs.get('mask', args[-1] if args else None)
        if mask is None or isinstance(mask, bool):
            count = tf.size(inputs) // tf.size(mean)
        else:
            count = tf.reduce_sum(tf.cast(mask, tf.int32))
        return _over_all_ranks(mean, variance, count)
