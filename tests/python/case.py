# SPDX-License-Identifier: Apache-2.0
"""The base class of the tests of horovod.torch that run in a job."""

import unittest

import horovod.torch as hvd
from inputs import nearly


class Case(unittest.TestCase):
    """A test that runs on all ranks of a job and compares results with values that it computes."""

    @classmethod
    def setUpClass(cls):
        hvd.init()

    def check_kind(self, result, expected):
        self.assertEqual(result.dtype, expected.dtype)
        self.assertEqual(result.shape, expected.shape)

    def check(self, result, expected):
        """Asserts that the tensors are equal, except for rounding."""
        self.check_kind(result, expected)
        self.assertTrue(nearly(result, expected), f'{result} is not {expected}')

    def check_same(self, result, expected):
        """Asserts that the tensors are exactly equal."""
        self.check_kind(result, expected)
        self.assertEqual(result.tolist(), expected.tolist())
