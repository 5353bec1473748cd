# SPDX-License-Identifier: Apache-2.0
"""How calls of the backend hvd with tensors on a GPU use streams. tests/fake_gpu stands in for the
GPU: a stream that does not wait for a call reads old data. Test doubles replace torch's streams,
events and futures."""

import contextlib
import ctypes
import threading
import unittest
from unittest import mock

import torch
import torch.distributed as dist

import gpu_test
from distributed_case import begin, end, wait_until
from gpu_test import Double, call
from horovod.common.library import lib, quick
from horovod.torch.collectives import tensors as memory
from horovod.torch.distributed import reductions
from horovod.torch.distributed.memory import Memory

MANY = 40  # more calls than run at once: _AT_ONCE of horovod/torch/distributed/calls.py
LATE = 60  # copies on the stream that delay the input by some milliseconds

_thread = threading.local()
_context = ctypes.c_void_p()


def use_device():
    """Makes the CUDA context current in this thread, once."""
    if not getattr(_thread, 'has_context', False):
        call('cuDevicePrimaryCtxRetain', ctypes.byref(_context), 0)
        call('cuCtxPushCurrent_v2', _context)
        _thread.has_context = True


class Stream:
    """A double of torch.cuda.Stream."""

    def __init__(self, device=None, handle=None):
        use_device()
        if handle is None:
            handle = ctypes.c_void_p()
            call('cuStreamCreateWithPriority', ctypes.byref(handle), 1, 0)
        self.cuda_stream = handle.value

    def wait_event(self, event):
        use_device()
        call('cuStreamWaitEvent', ctypes.c_void_p(self.cuda_stream), event.handle, 0)


class Event:
    """A double of torch.cuda.Event."""

    def __init__(self):
        use_device()
        self.handle = ctypes.c_void_p()
        call('cuEventCreate', ctypes.byref(self.handle), 0)

    def record(self, stream):
        call('cuEventRecord', self.handle, ctypes.c_void_p(stream.cuda_stream))

    def query(self):
        use_device()
        return gpu_test.cuda.cuEventQuery(self.handle) == 0


class Future:
    """A double of torch.futures.Future, for doubles of tensors."""

    def __init__(self, devices=None):
        self.devices = devices
        self.result = None

    def then(self, callback):
        self.following, self.callback = Future(), callback
        return self.following

    def set_result(self, result):
        self.result = result
        self.following.result = self.callback(self)

    def done(self):
        return self.result is not None


def current_stream(device=None):
    return getattr(_thread, 'stream', None) or Works.default


@contextlib.contextmanager
def stream(chosen):
    """Makes the stream current in this thread, like torch.cuda.stream."""
    before, _thread.stream = getattr(_thread, 'stream', None), chosen
    try:
        yield
    finally:
        _thread.stream = before


@contextlib.contextmanager
def on(chosen):
    """Makes the stream current as stream() does, and for the copies of tensor doubles, too."""
    with stream(chosen), gpu_test.on_stream(ctypes.c_void_p(chosen.cuda_stream)):
        yield


class Works(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        reason = gpu_test.open_gpu()
        if reason:
            raise unittest.SkipTest(reason)
        cls.default = Stream(handle=Double.stream)
        for where, what, double in (
                (torch.version, 'cuda', '12.4'), (torch.cuda, 'current_stream', current_stream),
                (torch.cuda, 'Stream', Stream), (torch.cuda, 'Event', Event),
                (torch.cuda, 'stream', stream), (torch.futures, 'Future', Future)):
            patch = mock.patch.object(where, what, double)
            patch.start()
            cls.addClassCleanup(patch.stop)
        memory._takes_gpus.cache_clear()
        begin()
        cls.addClassCleanup(end)
        cls.group = dist.distributed_c10d._get_default_group()
        cls.rank, cls.size = dist.get_rank(), dist.get_world_size()

    def setUp(self):
        self.waits = []  # (name of thread, stream) of each hvd_wait_on
        real = lib.hvd_wait_on

        def spy(pointer, stream, patience_ms, error):
            status = real(pointer, stream, patience_ms, error)
            if status == 0:
                self.waits.append((threading.current_thread().name, stream))
            return status

        patch = mock.patch.object(lib, 'hvd_wait_on', spy)
        patch.start()
        self.addCleanup(patch.stop)

    def start(self, number=0, finish=None, count=3):
        """Starts an allreduce of a tensor whose values are computed late. Returns the tensor and
        the work."""
        tensor = Double([count], [self.rank, number, 1][:count], late=LATE)
        word, how = reductions.find(dist.ReduceOp.SUM, torch.ones(1))
        shape = torch.Size([count])
        work = self.group._start(
            ('all_reduce', word, torch.float32, shape), quick.allreduce_start,
            [Memory(tensor, tensor, shape)], (1, *how, self.group._set), [tensor], None,
            finish and (lambda: finish(tensor)))
        return tensor, work

    def expected(self, number=0):
        return [sum(range(self.size)), number * self.size, self.size]

    def test_a_future_leaves_the_streams_of_the_script_alone(self):
        _, work = self.start()
        future = work.get_future()
        wait_until(future.done, 'the end of a future')
        [(thread, used)] = self.waits
        self.assertNotEqual(thread, threading.current_thread().name)
        self.assertNotIn(used, (None, self.default.cuda_stream))
        work.wait()

    def test_wait_follows_after_the_end_of_a_future(self):
        for number in range(4):
            tensor, work = self.start(number)
            wait_until(work.get_future().done, 'the end of a future')
            with on(Stream()):
                work.wait()
                self.assertEqual(tensor.tolist(), self.expected(number))

    def test_wait_follows_while_a_future_is_under_way(self):
        for number in range(4):
            tensor, work = self.start(number)
            work.get_future()
            with on(Stream()):
                work.wait()
                self.assertEqual(tensor.tolist(), self.expected(number))

    def test_wait_follows_calls_that_have_started_late(self):
        started = []
        for number in range(MANY):
            with on(Stream()):
                started.append(self.start(number))
        for number in reversed(range(MANY)):
            tensor, work = started[number]
            with on(Stream()):
                work.wait()
                self.assertEqual(tensor.tolist(), self.expected(number))

    def test_each_stream_that_waits_follows(self):
        tensor, work = self.start()
        for _ in range(3):
            with on(Stream()):
                work.wait()
                self.assertEqual(tensor.tolist(), self.expected())

    def test_wait_follows_copies_of_the_result(self):
        copies = []

        def copy(tensor):
            result = Double([3])
            handle = ctypes.c_void_p(current_stream().cuda_stream)
            for source in [result] * LATE + [tensor]:
                call('cuMemcpyAsync', ctypes.c_uint64(result.data_ptr()),
                     ctypes.c_uint64(source.data_ptr()), ctypes.c_size_t(12), handle)
            copies.append(result)

        _, work = self.start(7, finish=copy)
        wait_until(work.get_future().done, 'the end of a future')
        with on(Stream()):
            work.wait()
            self.assertEqual(copies[0].tolist(), self.expected(7))

    def test_a_call_is_completed_when_the_device_has_its_result(self):
        """After is_completed(), a stream that does not wait can read the result."""
        tensor, work = self.start(5)
        wait_until(work.get_future().done, 'the end of a future')
        wait_until(work.is_completed, 'the end of a call')
        with on(Stream()):
            self.assertEqual(tensor.tolist(), self.expected(5))

    def test_memory_is_kept_for_the_streams_that_use_it(self):
        tensor, work = self.start()
        wait_until(work.get_future().done, 'the end of a future')
        [(_, used)] = self.waits
        self.assertEqual(set(tensor.recorded), {used})
        work.wait()

    def test_no_other_stream_is_recorded(self):
        tensor, work = self.start()
        work.wait()
        self.assertEqual(self.waits, [(threading.current_thread().name, self.default.cuda_stream)])
        self.assertEqual(list(tensor.recorded), [])
