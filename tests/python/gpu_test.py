# SPDX-License-Identifier: Apache-2.0
"""Collectives on tensors of a GPU. tests/fake_gpu stands in for CUDA and NCCL. torch cannot make
CUDA tensors without a GPU, so test doubles replace them: they have device memory and the attributes
that the front end uses."""

import contextlib
import copy
import ctypes
import math
import types
import unittest
from unittest import mock

import torch

import horovod.torch as hvd
from horovod.common.exceptions import HorovodInternalError
from horovod.common.library import DTYPES
from horovod.torch.collectives import allreduce
from horovod.torch.collectives import tensors as memory

cuda = None


def call(name, *arguments):
    error = getattr(cuda, name)(*arguments)
    if error != 0:
        raise RuntimeError(f'{name}: error {error}')


class Double:
    """A test double of a contiguous float32 tensor on device 0; isinstance() calls it a Tensor."""

    __class__ = property(lambda self: torch.Tensor)
    is_cpu, is_cuda, layout, dtype, device = False, True, torch.strided, torch.float32, 'cuda:0'
    stream = None  # the current stream
    recorded = ()  # other streams that use the tensor's memory

    def __init__(self, shape, values=None, late=0):
        """``late``: the number of copies that delay the values on the stream; 60 copies take some
        milliseconds."""
        self.shape = tuple(shape)
        self._bytes = self.held_bytes = 4 * math.prod(self.shape)
        self._address = ctypes.c_uint64()
        call('cuMemAlloc_v2', ctypes.byref(self._address), ctypes.c_size_t(self._bytes or 1))
        for _ in range(late):
            self._copy(self._address.value, self._address.value)
        if values is not None:
            self._host = (ctypes.c_float * len(values))(*values)  # the stream reads it later
            self._copy(self._address.value, ctypes.addressof(self._host))

    def _copy(self, target, source):
        call('cuMemcpyAsync', ctypes.c_uint64(target), ctypes.c_uint64(source),
             ctypes.c_size_t(self._bytes), Double.stream)

    def record_stream(self, stream):
        self.recorded = [*self.recorded, stream.cuda_stream]

    def dim(self):
        return len(self.shape)

    def data_ptr(self):
        return self._address.value

    def get_device(self):
        return 0

    def __len__(self):
        return self.shape[0]

    def numel(self):
        return math.prod(self.shape)

    def element_size(self):
        return 4

    def resize_(self, shape):
        self.shape = tuple(shape)
        self._bytes = 4 * math.prod(self.shape)
        return self

    def __getitem__(self, rows):
        part = copy.copy(self)
        return part.resize_((len(range(*rows.indices(len(self)))), *self.shape[1:]))

    def clone(self):
        cloned = Double(self.shape)
        cloned._copy(cloned.data_ptr(), self.data_ptr())
        return cloned

    def is_contiguous(self):
        return True

    def to(self, device):
        assert device == self.device
        return self

    def tolist(self):
        values = (ctypes.c_float * math.prod(self.shape))()
        self._copy(ctypes.addressof(values), self.data_ptr())
        event = ctypes.c_void_p()
        call('cuEventCreate', ctypes.byref(event), 0)
        call('cuEventRecord', event, Double.stream)
        while cuda.cuEventQuery(event) == 600:
            pass
        call('cuEventDestroy_v2', event)
        return list(values)


def open_gpu():
    """Opens the stand-in for a GPU. Returns the reason if there is none, otherwise None."""
    global cuda
    try:
        cuda = ctypes.CDLL('libcuda.so.1')
    except OSError as cause:
        return str(cause)
    if not hasattr(cuda, 'fake_gpu_live'):
        return 'libcuda.so.1 is not the stand-in'
    context, Double.stream = ctypes.c_void_p(), ctypes.c_void_p()
    call('cuInit', 0)
    call('cuDevicePrimaryCtxRetain', ctypes.byref(context), 0)
    call('cuCtxPushCurrent_v2', context)
    call('cuStreamCreateWithPriority', ctypes.byref(Double.stream), 1, 0)
    return None


@contextlib.contextmanager
def on_stream(stream):
    """A context manager that makes the stream current."""
    before, Double.stream = Double.stream, stream
    try:
        yield
    finally:
        Double.stream = before


class GpuTest(unittest.TestCase):
    """Results of collectives on a rank's GPU."""

    @classmethod
    def setUpClass(cls):
        reason = open_gpu()
        if reason:
            raise unittest.SkipTest(reason)
        for patch in (mock.patch.object(torch.version, 'cuda', '12.4'),
                      mock.patch.object(torch.cuda, 'current_stream', lambda device:
                                        types.SimpleNamespace(cuda_stream=Double.stream.value)),
                      mock.patch.object(memory.torch, 'empty', cls.empty)):
            patch.start()
            cls.addClassCleanup(patch.stop)
        memory._takes_gpus.cache_clear()
        hvd.init()
        cls.rank, cls.size = hvd.rank(), hvd.size()

    empty_on_host = staticmethod(torch.empty)

    @classmethod
    def empty(cls, shape, device='cpu', **rest):
        return Double(shape) if device == Double.device else cls.empty_on_host(shape, **rest)

    def test_the_versions_of_cuda_and_nccl_are_returned(self):
        self.assertTrue(hvd.cuda_built())
        self.assertEqual(hvd.nccl_built(), 21803)

    def test_allreduce_in_place(self):
        for step in range(5):
            tensor = Double([3], [self.rank, step, 1])
            result = hvd.synchronize(hvd.allreduce_async_(tensor, name='weights', op=hvd.Sum))
            self.assertIs(result, tensor)
            self.assertEqual(result.tolist(), [sum(range(self.size)), step * self.size, self.size])

    def test_name_may_go_to_another_stream(self):
        streams = [Double.stream, ctypes.c_void_p()]
        call('cuStreamCreateWithPriority', ctypes.byref(streams[1]), 1, 0)
        for step in range(8):
            with on_stream(streams[step % 2]):
                tensor = Double([2], [self.rank, step], late=60)
                handle = hvd.allreduce_async_(tensor, name='moves', op=hvd.Sum)
                self.assertEqual(hvd.synchronize(handle).tolist(),
                                 [sum(range(self.size)), step * self.size])

    def test_memory_is_kept_for_the_stream_that_waits(self):
        other = ctypes.c_void_p()
        call('cuStreamCreateWithPriority', ctypes.byref(other), 1, 0)
        starts = {'again': lambda tensor: hvd.allreduce_async_(tensor, name='kept', op=hvd.Sum),
                  'group': lambda tensor: hvd.grouped_allreduce_async_([tensor], name='kept group'),
                  'gather': lambda tensor: hvd.allgather_async(tensor, name='kept gather')}
        for name, start in starts.items():
            for waits_on, recorded in ((Double.stream, []), (other, [other.value])):
                with self.subTest(name, recorded=recorded):
                    tensor = Double([1], [self.rank])
                    handle = start(tensor)
                    with on_stream(waits_on):
                        hvd.synchronize(handle)
                    self.assertEqual(sorted(set(tensor.recorded)), recorded)

    def test_name_may_go_to_another_device(self):
        for step in range(6):
            values = [float(self.rank), float(step)]
            tensor = Double([2], values) if step % 3 else torch.tensor(values)
            handle = hvd.allreduce_async_(tensor, name='here or there', op=hvd.Sum)
            self.assertEqual(hvd.synchronize(handle).tolist(),
                             [sum(range(self.size)), step * self.size])

    def test_allreduce_to_a_new_tensor(self):
        tensor = Double([2], [self.rank + 1, 4])
        result = hvd.synchronize(hvd.allreduce_async(tensor, name='new'))
        self.assertAlmostEqual(result.tolist()[0], (self.size + 1) / 2, places=5)
        self.assertEqual(tensor.tolist(), [self.rank + 1, 4])

    def test_groups(self):
        tensors = [Double([2], [i, self.rank]) for i in range(4)]
        handle = hvd.grouped_allreduce_async(tensors, name='group', op=hvd.Sum)
        for i, result in enumerate(hvd.synchronize(handle)):
            self.assertEqual(result.tolist(), [i * self.size, sum(range(self.size))])

    def test_floats_travel_as_halves(self):
        for wire, fine in (('float16', 1 + 2.0 ** -14), ('bfloat16', 1 + 2.0 ** -10)):
            settings = (hvd.Sum, 1.0, 1.0, hvd.global_process_set)
            for _ in range(3):
                tensor = Double([2], [fine, 3])
                result = hvd.synchronize(allreduce.start_in_place(
                    tensor, DTYPES[wire], 'as halves', *settings))
                self.assertIs(result, tensor)
                self.assertEqual(result.tolist(), [self.size, 3 * self.size])
                group = [Double([2], [fine, i]) for i in range(3)]
                results = hvd.synchronize(allreduce.start_group_in_place(
                    group, [DTYPES[wire], 0, DTYPES[wire]], 'some as halves', *settings))
                for i, (result, first) in enumerate(zip(results, (1, fine, 1))):
                    self.assertEqual(result.tolist(), [first * self.size, i * self.size])

    def test_broadcast(self):
        tensor = Double([2], [self.rank, 5])
        self.assertEqual(hvd.broadcast_(tensor, 0, name='root').tolist(), [0, 5])

    def test_allgather_of_different_rows(self):
        tensor = Double([self.rank + 1, 2], [self.rank] * (2 * self.rank + 2))
        result = hvd.synchronize(hvd.allgather_async(tensor, name='rows'))
        self.assertEqual(result.tolist(), [float(r) for r in range(self.size)
                                           for _ in range(2 * r + 2)])

    def finish(self, handle):
        """Returns the result, and whether it was copied out of libhvd's memory."""
        with mock.patch.object(memory, '_copy_out', wraps=memory._copy_out) as copies:
            return hvd.synchronize(handle), copies.called

    def test_allgather_of_the_same_rows_is_not_copied(self):
        # in steps 2 and 3 the other ranks have more rows than before, in step 4 fewer
        for step, (others, copied) in enumerate([(2, True), (2, False), (3, self.size > 1),
                                                 (3, False), (1, False)]):
            rows = [2 if rank == 0 else others for rank in range(self.size)]

            mine = rows[self.rank]
            tensor = Double([mine, 3], [10 * self.rank + step] * (3 * mine))
            result, is_copied = self.finish(hvd.allgather_async(tensor, name='same'))
            self.assertEqual(result.tolist(), [10 * rank + step for rank in range(self.size)
                                               for _ in range(3 * rows[rank])])
            if self.rank == 0:  # its own rows, from which it expects those of the result, remain
                self.assertEqual(is_copied, copied)

    def test_small_result_after_a_large_one_holds_little_memory(self):
        for others in (20, 1, 1):
            rows = [1 if rank == 0 else others for rank in range(self.size)]
            mine = rows[self.rank]
            tensor = Double([mine, 3], [self.rank] * (3 * mine))
            result = hvd.synchronize(hvd.allgather_async(tensor, name='shrinks'))
            self.assertEqual(result.tolist(), [rank for rank in range(self.size)
                                               for _ in range(3 * rows[rank])])
            self.assertLessEqual(result.held_bytes, 2 * 4 * 3 * sum(rows))

    def test_alltoall_of_the_same_rows_is_not_copied(self):
        for step in range(4):
            tensor = Double([self.size, 3], [step + self.rank] * (3 * self.size))
            (result, _), is_copied = self.finish(hvd.alltoall_async(tensor, name='all the same'))
            self.assertEqual(is_copied, step == 0)
            self.assertEqual(result.tolist(), [step + rank for rank in range(self.size)
                                               for _ in range(3)])

    def test_alltoall_returns_the_received_splits(self):
        splits = torch.tensor([1] * self.size, dtype=torch.int32)
        tensor = Double([self.size], [10 * self.rank + to for to in range(self.size)])
        result, received = hvd.synchronize(hvd.alltoall_async(tensor, splits, name='all'))
        self.assertEqual(result.tolist(), [10 * r + self.rank for r in range(self.size)])
        self.assertEqual(received.tolist(), [1] * self.size)

    def test_reducescatter(self):
        tensor = Double([self.size, 2], list(range(2 * self.size)))
        result = hvd.synchronize(hvd.reducescatter_async(tensor, name='part', op=hvd.Sum))
        self.assertEqual(result.tolist(), [self.size * 2 * self.rank,
                                           self.size * (2 * self.rank + 1)])

    def test_cache_is_freed_when_memory_is_short(self):
        def free_cache():
            cuda.fake_gpu_limit(ctypes.c_size_t(0), ctypes.c_size_t(0))
            freed.append(True)

        freed = []
        rows = 200000 if self.rank == 0 else 1  # on rank 0, more memory than hvd keeps in reserve
        with mock.patch.object(torch.cuda, 'empty_cache', free_cache):
            tensor = Double([rows], [1] * rows)
            if self.rank == 0:
                cuda.fake_gpu_limit(ctypes.c_size_t(1), ctypes.c_size_t(0))
            handle = hvd.allgather_async(tensor, name='short')
            while not hvd.poll(handle):
                pass
            with mock.patch.object(memory, '_copy_out', lambda request, *_: None):
                hvd.synchronize(handle)
        self.assertEqual(freed, [True] if self.rank == 0 else [])

    def test_polling_is_enough_to_complete_a_collective(self):
        handle = hvd.allreduce_async_(Double([1], [1]), name='polled', op=hvd.Sum)
        while not hvd.poll(handle):
            pass
        self.assertEqual(hvd.synchronize(handle).tolist(), [self.size])

    def test_host_and_gpu_tensors_in_one_step(self):
        for step in range(5):
            pair = [Double([2], [self.rank, step]), torch.tensor([float(self.rank), step])]
            handles = [hvd.allreduce_async_(tensor, name=name, op=hvd.Sum)
                       for name, tensor in zip(('there', 'here'), pair)]
            for handle in handles[::-1]:
                self.assertEqual(hvd.synchronize(handle).tolist(),
                                 [sum(range(self.size)), step * self.size])

    def test_list_on_host_and_gpu_is_refused(self):
        for pair in ([Double([1], [1]), torch.ones(1)], [torch.ones(1), Double([1], [1])]):
            with self.assertRaisesRegex(hvd.HorovodInternalError,
                                        'Tensors in list must be on same device.'):
                hvd.grouped_allreduce_async(pair, name='pair')

    def test_host_and_gpu_mismatch(self):
        if self.size == 1:
            self.skipTest('needs two ranks')
        tensor = torch.ones(1) if self.rank == 0 else Double([1], [1])
        with self.assertRaisesRegex(HorovodInternalError, 'CPU/GPU device selection'):
            hvd.synchronize(hvd.allreduce_async_(tensor, name='where'))
