# SPDX-License-Identifier: Apache-2.0
"""The device of tests that run on the CPU and on GPUs. HVD_TEST_DEVICE is cpu, or cuda for this
machine's GPUs; several ranks share a GPU if there are fewer GPUs than ranks."""

import contextlib
import os

import torch
from torch.utils._python_dispatch import TorchDispatchMode

import horovod.torch as hvd

DEVICE = os.environ.get('HVD_TEST_DEVICE', 'cpu')

if DEVICE == 'cuda':
    # NCCL accepts several ranks on one GPU only if each claims to be on a host of its own.
    os.environ['NCCL_HOSTID'] = f'test.{os.environ.get("HOROVOD_RANK", 0)}'
    hvd.init()
    torch.cuda.set_device(hvd.local_rank() % torch.cuda.device_count())


class _NoLooks(TorchDispatchMode):
    """Raises an error when the value of a tensor is read, as item() does."""

    def __torch_dispatch__(self, function, types, arguments=(), options=None):
        if function is torch.ops.aten._local_scalar_dense.default:
            raise AssertionError('the value of a tensor is read: with a GPU the program would wait for it')
        return function(*arguments, **(options or {}))


@contextlib.contextmanager
def assert_no_waiting():
    """A context manager that fails if the host waits for a GPU. On GPUs torch itself detects that;
    on the CPU, reading a tensor's value counts as waiting."""
    if DEVICE == 'cpu':
        with _NoLooks():
            yield
        return
    torch.cuda.set_sync_debug_mode('error')
    try:
        yield
    finally:
        torch.cuda.set_sync_debug_mode('default')
