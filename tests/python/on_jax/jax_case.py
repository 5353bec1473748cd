# SPDX-License-Identifier: Apache-2.0
"""The input of each rank, which every rank can compute, and the base class of the tests.

Values are small whole numbers: sums of a few ranks are exact in every dtype and in any order.
"""

import unittest

import jax.numpy as jnp
import numpy as np

import horovod.jax as hvd


def values(rank, shape, dtype='float32'):
    """Returns the NumPy array of a rank."""
    return np.random.RandomState(rank + 1).randint(1, 4, shape).astype(jnp.dtype(dtype))


def mine(shape, dtype='float32'):
    return jnp.asarray(values(hvd.rank(), shape, dtype))


def total(shape, dtype='float32'):
    """Returns the sum over all ranks."""
    return sum(values(rank, shape, dtype) for rank in range(hvd.size()))


class Case(unittest.TestCase):
    """A test that runs on all ranks of a job and compares results with those of NumPy."""

    @classmethod
    def setUpClass(cls):
        hvd.init()

    def check(self, result, expected):
        """Asserts that the arrays are equal, except for the rounding of one multiplication."""
        self.assertEqual(result.dtype, expected.dtype)
        self.assertEqual(result.shape, expected.shape)
        is_float = jnp.issubdtype(expected.dtype, jnp.floating)
        np.testing.assert_allclose(
            np.asarray(result, 'float64'), np.asarray(expected, 'float64'), atol=0,
            rtol=2 * float(jnp.finfo(expected.dtype).eps) if is_float else 0)
