# SPDX-License-Identifier: Apache-2.0
"""Collectives on arrays of a GPU. tests/fake_gpu stands in for CUDA and NCCL. An MXNet for CPUs has
no GPU arrays, so host arrays replace them: the stand-ins accept host memory as device memory."""

import ctypes
import unittest
from unittest import mock

import mxnet as mx
import numpy as np

import horovod.mxnet as hvd
from horovod.mxnet import arrays
from mxnet_case import Case, array, mine, stacked


def calls():
    """Returns how many calls of CUDA and NCCL there were since the last call of this function."""
    return ctypes.CDLL('libcuda.so.1').fake_gpu_fail_at(ctypes.c_long(0))


def settled(result):
    """Returns the result after the default stream has completed its work. On a GPU, MXNet's streams
    wait for the default stream, because they are created without cudaStreamNonBlocking."""
    cuda, context = ctypes.CDLL('libcuda.so.1'), ctypes.c_void_p()
    for error in (cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0),
                  cuda.cuCtxPushCurrent_v2(context), cuda.cuCtxSynchronize(),
                  cuda.cuCtxPopCurrent_v2(ctypes.byref(context)),
                  cuda.cuDevicePrimaryCtxRelease_v2(0)):
        assert error == 0
    return result


class Gpu(Case):

    @classmethod
    def setUpClass(cls):
        try:
            cuda = ctypes.CDLL('libcuda.so.1')
        except OSError as cause:
            raise unittest.SkipTest(str(cause)) from cause
        if not hasattr(cuda, 'fake_gpu_live'):
            raise unittest.SkipTest('libcuda.so.1 is not the stand-in')
        patch = mock.patch.object(arrays, 'device_of', lambda tensor: 0)
        patch.start()
        cls.addClassCleanup(patch.stop)
        super().setUpClass()

    def test_allreduce(self):
        self.check(hvd.allreduce(mine((2,)), op=hvd.Sum), stacked((2,)).sum(axis=0))
        for salt in range(4):
            calls()
            expected = stacked((5, 3), salt=salt).sum(axis=0)
            tensor = mine((5, 3), salt=salt)
            self.check(hvd.allreduce(tensor, op=hvd.Sum, name='new'), expected)
            self.check(tensor, stacked((5, 3), salt=salt)[hvd.rank()])
            self.assertIs(hvd.allreduce_(tensor, op=hvd.Sum, name='in place'), tensor)
            self.check(tensor * 2, expected * 2)
            self.assertGreater(calls(), 0)

    def test_many_under_way_in_different_orders(self):
        tensors = [mine((1000 + index,), salt=index) for index in range(8)]
        for step in range(8):
            index = (step + 3 * hvd.rank()) % 8
            hvd.allreduce_(tensors[index], op=hvd.Sum, name=f'many.{index}')
        for index, tensor in enumerate(tensors):
            self.check(tensor, stacked((1000 + index,), salt=index).sum(axis=0))

    def test_a_collective_waits_for_what_computes_its_array(self):
        tensor = mx.nd.ones((300, 300)) * (hvd.rank() + 1)
        for _ in range(20):
            tensor = mx.nd.dot(tensor, mx.nd.eye(300))
        total = hvd.size() * (hvd.size() + 1) // 2
        self.check(hvd.allreduce(tensor, op=hvd.Sum), np.full((300, 300), total, 'float32'))

    def test_groups(self):
        results = hvd.grouped_allreduce([mine((4,)), mine((2, 2), salt=1)], op=hvd.Sum, name='group')
        self.check(results[0], stacked((4,)).sum(axis=0))
        self.check(results[1], stacked((2, 2), salt=1).sum(axis=0))

    def test_broadcast(self):
        self.check(hvd.broadcast(mine((7,)), 0, name='root'), stacked((7,))[0])
        tensor = mine((7,))
        self.assertIs(hvd.broadcast_(tensor, hvd.size() - 1, name='last root'), tensor)
        self.check(tensor, stacked((7,))[-1])

    def test_allgather_of_different_rows(self):
        rows = [np.full((rank + 1, 2), rank, 'float32') for rank in range(hvd.size())]
        result = settled(hvd.allgather(array(rows[hvd.rank()]), name='rows'))
        self.check(result, np.concatenate(rows))

    def test_alltoall_returns_the_received_splits(self):
        splits = [rank + 1 for rank in range(hvd.size())]
        tensor = array(np.full((sum(splits), 2), hvd.rank(), 'float32'))
        output, received = settled(hvd.alltoall(tensor, splits, name='all'))
        own = hvd.rank() + 1
        self.assertEqual(received.asnumpy().tolist(), [own] * hvd.size())
        self.check(output, np.repeat(np.arange(hvd.size(), dtype='float32'), own)[:, None]
                   * np.ones((1, 2), 'float32'))

    def test_reducescatter(self):
        shape = (2 * hvd.size(), 3)
        self.check(hvd.reducescatter(mine(shape), op=hvd.Sum, name='part'),
                   stacked(shape).sum(axis=0)[2 * hvd.rank():2 * hvd.rank() + 2])

    def test_a_mismatch_is_raised_where_the_array_is_waited_for(self):
        if hvd.size() == 1:
            self.skipTest('one rank agrees with itself')
        with self.assertRaisesRegex(hvd.HorovodInternalError, 'shape'):
            hvd.allreduce(mine((2 + hvd.rank(),)), name='wrong').wait_to_read()
        self.check(hvd.allreduce(mine((3,)), op=hvd.Sum, name='right'), stacked((3,)).sum(axis=0))
