# SPDX-License-Identifier: Apache-2.0
"""Converts arrays of the reference to tensors of TensorFlow, and back."""

import os

os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '2')

import numpy as np
import tensorflow as tf

from reference.arithmetic import FLOATS

tf.get_logger().setLevel('ERROR')  # no warnings that many tf.functions are slow: tests need many


def tensor(values, dtype):
    return tf.cast(tf.constant(values), getattr(tf, dtype))


def array(given):
    """Returns the numbers of a tensor, and the name of its dtype."""
    name = given.dtype.name
    values = tf.cast(given, tf.float64) if name in FLOATS else given
    return np.asarray(values.numpy()), name
