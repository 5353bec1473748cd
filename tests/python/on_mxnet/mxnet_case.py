# SPDX-License-Identifier: Apache-2.0
"""What each rank puts in, computable on every rank, and the base of the tests.

Values are small whole numbers: sums and products of a few ranks are exact in every dtype and in
any order.
"""

import unittest

import mxnet as mx
import numpy as np

import horovod.mxnet as hvd


def values(rank, shape, dtype='float32', salt=0):
    """The numbers of a rank, for NumPy; ``salt`` tells several of one shape apart."""
    return np.random.RandomState(1000 * salt + rank + 1).randint(1, 4, shape).astype(dtype)


def stacked(shape, dtype='float32', salt=0):
    """The numbers of all ranks, one row each."""
    return np.stack([values(rank, shape, dtype, salt) for rank in range(hvd.size())])


def array(numbers):
    """As MXNet's array of the same dtype."""
    return mx.nd.array(numbers, dtype=numbers.dtype)


def mine(shape, dtype='float32', salt=0):
    return array(values(hvd.rank(), shape, dtype, salt))


class Case(unittest.TestCase):
    """There is a job, and results are compared with what NumPy has computed here."""

    @classmethod
    def setUpClass(cls):
        hvd.init()

    def check(self, result, expected):
        """Equal but for the rounding of one multiplication."""
        self.assertEqual(np.dtype(result.dtype), expected.dtype)
        self.assertEqual(tuple(result.shape), expected.shape)
        kind = expected.dtype
        tolerance = 2 * np.finfo(kind).eps if np.issubdtype(kind, np.floating) else 0
        np.testing.assert_allclose(result.asnumpy().astype('float64'),
                                   expected.astype('float64'), rtol=tolerance, atol=0)
