# SPDX-License-Identifier: Apache-2.0
"""Where tests that can do both have their tensors: HVD_TEST_DEVICE is cpu, or cuda for this
machine's own GPUs, which the ranks share where there are fewer."""

import contextlib
import os

import torch
from torch.utils._python_dispatch import TorchDispatchMode

import horovod.torch as hvd

DEVICE = os.environ.get('HVD_TEST_DEVICE', 'cpu')

if DEVICE == 'cuda':
    # NCCL takes several ranks on one GPU only where each says that it is on a host of its own.
    os.environ['NCCL_HOSTID'] = f'test.{os.environ.get("HOROVOD_RANK", 0)}'
    hvd.init()
    torch.cuda.set_device(hvd.local_rank() % torch.cuda.device_count())


class _NoLooks(TorchDispatchMode):
    """Refuses to look at what a tensor of one element holds."""

    def __torch_dispatch__(self, function, types, arguments=(), options=None):
        if function is torch.ops.aten._local_scalar_dense.default:
            raise AssertionError('somebody looks at a value: with a GPU he would wait for it')
        return function(*arguments, **(options or {}))


@contextlib.contextmanager
def assert_no_waiting():
    """Fails where the host would wait for a GPU: torch's own eye on that where there is one,
    else on what would wait for it."""
    if DEVICE == 'cpu':
        with _NoLooks():
            yield
        return
    torch.cuda.set_sync_debug_mode('error')
    try:
        yield
    finally:
        torch.cuda.set_sync_debug_mode('default')
