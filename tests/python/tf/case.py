# SPDX-License-Identifier: Apache-2.0
"""The base of tests of horovod.tensorflow: the input of each rank, and the expected results.

Values are small whole numbers: sums and products of a few ranks are exact in every dtype and in
any order.
"""

import os
import unittest

os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '2')

import numpy as np
import tensorflow as tf

tf.get_logger().setLevel('ERROR')  # no warnings that many tf.functions are slow: tests need many

import horovod.tensorflow as hvd

FLOATS = [tf.float16, tf.bfloat16, tf.float32, tf.float64]


def array(value):
    """Returns the value of a tensor or variable as an array, also for scalars."""
    return np.asarray(value.numpy() if hasattr(value, 'numpy') else value)


def values(rank, shape, dtype=tf.float32, salt=0):
    """Returns the array of a rank. Different values of ``salt`` give different arrays."""
    whole = np.random.RandomState(1000 * salt + rank + 1).randint(1, 4, shape)
    if dtype is tf.bool:
        return np.asarray(whole > 2)
    return np.asarray(whole).astype(dtype.as_numpy_dtype)


def reduced(op, shape, dtype=tf.float32, salt=0):
    """Returns the reduction of the arrays of all ranks."""
    everything = np.stack([values(rank, shape, dtype, salt) for rank in range(hvd.size())])
    function = {hvd.Average: np.mean, hvd.Sum: np.sum, hvd.Max: np.max}[op]
    return np.asarray(function(everything.astype(np.float64), 0)).astype(dtype.as_numpy_dtype)


def in_both_modes(function):
    """Returns the results of the function in eager mode, and of two runs in a graph."""
    in_graph = tf.function(function)
    return [function(), in_graph(), in_graph()]


class Case(unittest.TestCase):
    """A test that runs on all ranks of a job and compares results with values that it computes."""

    @classmethod
    def setUpClass(cls):
        hvd.init()

    @classmethod
    def tearDownClass(cls):
        hvd.allgather_object(None)  # wait until all ranks have ended their tests

    def check(self, result, expected):
        """Asserts that the values are equal, except for the rounding of a multiplication by
        1/size."""
        result, expected = array(result), array(expected)
        self.assertEqual(result.dtype, expected.dtype)
        self.assertEqual(result.shape, expected.shape)
        floating = tf.as_dtype(result.dtype).is_floating
        tolerance = 2 * float(tf.experimental.numpy.finfo(result.dtype).eps) \
            if floating and result.dtype != tf.bfloat16 else 0.01 if floating else 0
        np.testing.assert_allclose(result.astype(np.float64), expected.astype(np.float64),
                                   rtol=tolerance, atol=0)

    def check_both(self, function, expected):
        """Checks the results of the function in eager mode and in a graph."""
        for result in in_both_modes(function):
            self.check(result, expected)
