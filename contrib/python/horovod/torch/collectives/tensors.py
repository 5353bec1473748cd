# SPDX-License-Identifier: Apache-2.0
"""torch tensors as libhvd sees them: dense row-major host memory.

A tensor that is on another device or strided is staged: its copy is reduced, and the result is
copied back when the request is waited for.
"""

import ctypes
import math
import weakref

import torch

from horovod.common.library import DEVICE_CPU, DTYPES, lib

# A dtype that this torch lacks, such as uint32 before 2.3, is left out.
_NUMBERS = {getattr(torch, name): number for name, number in DTYPES.items()
            if hasattr(torch, name)}


_STRIDED = torch.strided


def number(tensor):
    """What libhvd calls the tensor's dtype."""
    try:
        return _NUMBERS[tensor.dtype]
    except KeyError:
        raise ValueError(f'Tensor type {tensor.type()} is not supported.') from None


def is_host(tensor):
    """Whether libhvd can read and write the tensor's memory."""
    return tensor.is_cpu and tensor.layout is _STRIDED and tensor.is_contiguous()


def host(tensor):
    """The tensor itself where libhvd can read and write its memory, else a copy that it can."""
    if is_host(tensor):
        return tensor
    if tensor.layout is not _STRIDED:
        raise ValueError(f'Tensor type {tensor.type()} is not supported: it is not dense; see '
                         'sparse_allreduce_async() or to_dense()')
    return tensor.detach().cpu().contiguous()


def hosts(tensors):
    """The same for the members of a group."""
    if not tensors:
        raise ValueError('a grouped collective needs at least one tensor')
    if any(tensor.device != tensors[0].device for tensor in tensors):
        raise ValueError('Tensors in list must be on same device.')
    return [host(tensor) for tensor in tensors]


def empty(tensor, shape):
    """Host memory for a result of this dtype."""
    return torch.empty(shape, dtype=tensor.dtype)


def describe(name, source, target=None):
    """What horovod.common.requests wants to know; no target: the library allocates it."""
    return (name, source.data_ptr(), None if target is None else target.data_ptr(),
            source.shape, number(source), DEVICE_CPU)


def write_back(staged, tensor):
    """Ends an operation in place: fills the caller's tensor if it was staged; returns it."""
    if staged is not tensor:
        with torch.no_grad():
            tensor.copy_(staged)
    return tensor


def adopt(request, index, like, device):
    """The output ``index`` that the library allocated, as a tensor without a copy where it
    stays on the host. Its memory is freed with the last view of it."""
    address, rows = request.take(index)
    shape = (rows, *like.shape[1:])
    if not address:
        return torch.empty(shape, dtype=like.dtype, device=device)
    count = math.prod(shape)
    memory = (ctypes.c_char * (count * like.element_size())).from_address(address)
    weakref.finalize(memory, lib.hvd_free, address).atexit = False
    flat = torch.frombuffer(memory, dtype=like.dtype, count=count)
    # Not view(): autograd forbids in-place changes of a view that a Function returns.
    return flat.resize_(shape).to(device)
