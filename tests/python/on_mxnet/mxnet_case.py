# SPDX-License-Identifier: Apache-2.0
"""The input of each rank, which every rank can compute, and the base class of the tests.

Values are small whole numbers: sums and products of a few ranks are exact in every dtype and in
any order.
"""

import unittest

import mxnet as mx
import numpy as np

import horovod.mxnet as hvd


def values(rank, shape, dtype='float32', salt=0):
    """Returns the NumPy array of a rank. Different values of ``salt`` give different arrays."""
    return np.random.RandomState(1000 * salt + rank + 1).randint(1, 4, shape).astype(dtype)


def stacked(shape, dtype='float32', salt=0):
    """Returns the numbers of all ranks, one row for each rank."""
    return np.stack([values(rank, shape, dtype, salt) for rank in range(hvd.size())])


def array(numbers):
    """Converts a NumPy array to an array of MXNet with the same dtype."""
    return mx.nd.array(numbers, dtype=numbers.dtype)


def mine(shape, dtype='float32', salt=0):
    return array(values(hvd.rank(), shape, dtype, salt))


class Case(unittest.TestCase):
    """A test that runs on all ranks of a job and compares results with those of NumPy."""

    @classmethod
    def setUpClass(cls):
        hvd.init()

    def check(self, result, expected):
        """Asserts that the arrays are equal, except for the rounding of one multiplication."""
        self.assertEqual(np.dtype(result.dtype), expected.dtype)
        self.assertEqual(tuple(result.shape), expected.shape)
        kind = expected.dtype
        tolerance = 2 * np.finfo(kind).eps if np.issubdtype(kind, np.floating) else 0
        np.testing.assert_allclose(result.asnumpy().astype('float64'),
                                   expected.astype('float64'), rtol=tolerance, atol=0)
