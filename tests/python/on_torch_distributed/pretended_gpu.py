# SPDX-License-Identifier: Apache-2.0
"""Lets hvd treat host tensors as tensors on a GPU, so that a torch for CPUs can test the GPU code
of hvd with DistributedDataParallel and FSDP. tests/fake_gpu stands in for CUDA and NCCL, and with
FAKE_GPU_PAGEABLE=1 accepts host memory as device memory.

torch computes on the host, without streams, so the host waits whenever hvd has made the caller's
stream wait."""

import contextlib
import ctypes

import torch

from horovod.common.library import lib
from horovod.torch.collectives import tensors
from horovod.torch.distributed.waiter import Waiter

_NOT_READY = 600

_waits = []


class _Stream:
    """The current stream."""

    def __init__(self):
        self._cuda = ctypes.CDLL('libcuda.so.1')
        if not hasattr(self._cuda, 'fake_gpu_live'):
            raise RuntimeError('libcuda.so.1 is not the stand-in of tests/fake_gpu')
        self._context, self._handle = ctypes.c_void_p(), ctypes.c_void_p()
        self._call('cuInit', 0)
        self._call('cuDevicePrimaryCtxRetain', ctypes.byref(self._context), 0)
        self._call('cuCtxPushCurrent_v2', self._context)
        self._call('cuStreamCreateWithPriority', ctypes.byref(self._handle), 1, 0)
        self._call('cuCtxPopCurrent_v2', ctypes.byref(ctypes.c_void_p()))

    def handle(self, _):
        return self._handle.value

    def finish(self):
        """Waits until the stream has completed its work. Any thread may call it."""
        event = ctypes.c_void_p()
        self._call('cuCtxPushCurrent_v2', self._context)
        self._call('cuEventCreate', ctypes.byref(event), 0)
        self._call('cuEventRecord', event, self._handle)
        while self._cuda.cuEventQuery(event) == _NOT_READY:
            pass
        self._call('cuEventDestroy_v2', event)
        self._call('cuCtxPopCurrent_v2', ctypes.byref(ctypes.c_void_p()))

    def _call(self, name, *arguments):
        error = getattr(self._cuda, name)(*arguments)
        if error != 0:
            raise RuntimeError(f'{name}: error {error}')


def install():
    """Makes hvd treat all tensors as tensors on GPU 0 from now on."""
    stream, wait_on = _Stream(), lib.hvd_wait_on

    def wait_on_and_finish(*arguments):
        status = wait_on(*arguments)
        if status == 0:
            stream.finish()
            _waits.append(None)
        return status

    torch.Tensor.is_cpu = property(lambda self: False)
    torch.Tensor.get_device = lambda self: 0
    tensors.is_on_gpu = lambda tensor: True
    tensors._current_stream = stream.handle
    # These methods need do nothing, because the host has waited for the stream.
    tensors._Stream.mark = tensors._Stream.free_cache = lambda self: None
    tensors._Stream.follow = tensors._Stream.record = lambda self, _: None
    Waiter._stream_for = lambda self, work: contextlib.nullcontext()
    lib.hvd_wait_on = wait_on_and_finish


def waits():
    """Returns how often the caller's stream has waited for a collective or message."""
    return len(_waits)
