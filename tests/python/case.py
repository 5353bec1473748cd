# SPDX-License-Identifier: Apache-2.0
"""The base of tests of collectives."""

import unittest

import horovod.torch as hvd
from inputs import nearly


class Case(unittest.TestCase):
    """There is a job, and results are compared with what was computed here."""

    @classmethod
    def setUpClass(cls):
        hvd.init()

    def check_kind(self, result, expected):
        self.assertEqual(result.dtype, expected.dtype)
        self.assertEqual(result.shape, expected.shape)

    def check(self, result, expected):
        """Equal but for rounding."""
        self.check_kind(result, expected)
        self.assertTrue(nearly(result, expected), f'{result} is not {expected}')

    def check_same(self, result, expected):
        """Equal to the last bit."""
        self.check_kind(result, expected)
        self.assertEqual(result.tolist(), expected.tolist())
