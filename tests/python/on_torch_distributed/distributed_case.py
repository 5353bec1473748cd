# SPDX-License-Identifier: Apache-2.0
"""The base of the tests of the torch.distributed backend "hvd". The tests share a default group and
compare results with values that they compute themselves."""

import atexit
import ctypes
import functools
import os
import tempfile
import time
import unittest
from datetime import timedelta

import torch
import torch.distributed as dist

import horovod.torch.distributed  # noqa: F401  makes the backend known to releases before 2.14
import pretended_gpu
from inputs import nearly, stacked, values

VERSION = tuple(int(part) for part in torch.__version__.split('+')[0].split('.')[:2])
gather_into_one = getattr(dist, 'all_gather_single', None) or dist.all_gather_into_tensor
scatter_from_one = getattr(dist, 'reduce_scatter_single', None) or dist.reduce_scatter_tensor
PATIENCE = 200  # the most seconds to wait for an event; usually it takes milliseconds

_COMPUTE = {'SUM': torch.add, 'PRODUCT': torch.mul, 'MIN': torch.minimum, 'MAX': torch.maximum,
            'BAND': torch.bitwise_and, 'BOR': torch.bitwise_or, 'BXOR': torch.bitwise_xor}


# With 'cpu:hvd,cuda:gloo' hvd is tested as one of several backends of a group.
BACKEND = os.environ.get('HVD_TEST_BACKEND', 'hvd')
IS_ALONE = BACKEND == 'hvd'


IS_ON_GPU = os.environ.get('HVD_TEST_DEVICE') == 'pretended'
if IS_ON_GPU:
    pretended_gpu.install()


def begin():
    """Creates the default group from the launcher's variables, or without them a group of one
    rank."""
    if dist.is_initialized():
        return
    if 'RANK' in os.environ:
        dist.init_process_group(BACKEND)
    else:
        dist.init_process_group(BACKEND, store=dist.HashStore(), rank=0, world_size=1)


def meeting_place():
    """Returns the path of a file through which the ranks of the next default group find each other.
    A TCP port could still be in use by the store of the previous group."""
    path = [tempfile.mktemp(prefix='hvd-test-') if dist.get_rank() == 0 else None]
    dist.broadcast_object_list(path, 0)
    return path[0]


def begin_again(place=None):
    """Destroys all groups and makes a new default group, whose ranks find each other through the
    file ``place``."""
    rank, size, place = dist.get_rank(), dist.get_world_size(), place or meeting_place()
    dist.destroy_process_group()
    dist.init_process_group(BACKEND, init_method=f'file://{place}', rank=rank, world_size=size)


def gloo_group(ranks=None, timeout=timedelta(seconds=120)):
    """Returns a group of Gloo that is never destroyed. torch 1.13 may abort the process when it
    destroys one ("terminate called without an active exception"), even at the end of Python."""
    group = dist.new_group(ranks, timeout, 'gloo')
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(group))
    return group


@atexit.register
def end():
    """Destroys the default group when all ranks have ended their tests."""
    if dist.is_initialized():
        dist.barrier()
        dist.destroy_process_group()


def reduced(whole, op):
    """Returns the reduction of the rows of ``whole`` with the operation of this name."""
    exact = whole.to(torch.float64 if whole.is_floating_point() else torch.int64)
    if op == 'AVG':
        return (exact.sum(0) / len(whole)).to(whole.dtype)
    return functools.reduce(_COMPUTE[op], exact).to(whole.dtype)


def wait_until(condition, what):
    until = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < until, f'{what} has not happened within {PATIENCE} s'
        time.sleep(0.002)


class Case(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        if not IS_ALONE and VERSION < (2, 14):
            raise unittest.SkipTest('this torch has no backends in Python beside others')
        begin()

    def setUp(self):
        self.rank, self.size = dist.get_rank(), dist.get_world_size()

    def mine(self, shape, dtype=torch.float32, salt=0):
        return values(self.rank, shape, dtype, salt)

    def whole(self, shape, dtype=torch.float32, salt=0):
        return stacked(self.size, shape, dtype, salt)

    def check(self, result, expected):
        """Asserts that the tensors are equal, except for rounding."""
        self.assertEqual(result.dtype, expected.dtype)
        self.assertEqual(result.shape, expected.shape)
        self.assertTrue(nearly(result, expected), f'{result} is not {expected}')

    def check_same(self, result, expected):
        """Asserts that the tensors are exactly equal."""
        self.assertEqual(result.dtype, expected.dtype)
        self.assertEqual(result.tolist(), expected.tolist())

    def check_job_goes_on(self):
        ones = torch.ones(2)
        dist.all_reduce(ones)
        self.assertEqual(ones.tolist(), [self.size] * 2)

    def store(self, name):
        """Returns a store that all ranks share, through which they can wait for each other without
        calls of a group."""
        store = dist.distributed_c10d._get_default_store()
        store.set_timeout(timedelta(seconds=PATIENCE))
        return dist.PrefixStore(f'{name} {VERSION}', store)
