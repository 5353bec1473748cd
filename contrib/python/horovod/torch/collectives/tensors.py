# SPDX-License-Identifier: Apache-2.0
"""torch tensors as libhvd sees them: dense row-major memory of the host or of a CUDA device.

A tensor on a CUDA device is taken where it is, with the stream that is current, where libhvd has a
CUDA driver. What is on another device, or strided, is staged: its copy is reduced, and the result is
copied back when the request is waited for.
"""

import ctypes
import functools
import math
import weakref

import torch

from horovod.common.arguments import check_iterable, wrong_type
from horovod.common.exceptions import HorovodInternalError
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


def check(tensor, name='tensor'):
    """TypeError unless it is a tensor."""
    if not isinstance(tensor, torch.Tensor):
        raise wrong_type(name, tensor, 'a torch.Tensor')


def check_all(tensors):
    """The list of a group's members; TypeError unless they are tensors."""
    check_iterable('tensors', tensors, 'a list of torch.Tensor')
    tensors = list(tensors)
    for index, each in enumerate(tensors):
        check(each, f'tensors[{index}]')
    return tensors


def is_host(tensor):
    """Whether libhvd can read and write the tensor's memory."""
    return tensor.is_cpu and tensor.layout is _STRIDED and tensor.is_contiguous()


@functools.lru_cache(maxsize=None)
def _takes_gpus():
    """Whether libhvd can use what this torch calls CUDA: not with ROCm's torch."""
    return torch.version.cuda is not None and lib.hvd_cuda_version() > 0


def is_on_gpu(tensor):
    """Whether libhvd takes it on its device."""
    return tensor.is_cuda and _takes_gpus()


def gpu_of(tensor):
    """The number of the GPU where libhvd takes the tensor as it is; None: it does not."""
    if tensor.layout is _STRIDED and is_on_gpu(tensor) and tensor.is_contiguous():
        return tensor.get_device()
    return None


def usable(tensor):
    """The tensor itself where libhvd can read and write its memory, else a copy that it can."""
    check(tensor)
    if is_host(tensor):
        return tensor
    if tensor.layout is not _STRIDED:
        raise ValueError(f'Tensor type {tensor.type()} is not supported: it is not dense; see '
                         'sparse_allreduce_async() or to_dense()')
    if is_on_gpu(tensor):
        return tensor if tensor.is_contiguous() else tensor.detach().contiguous()
    return tensor.detach().cpu().contiguous()


def all_usable(tensors):
    """The same for the members of a group."""
    tensors = check_all(tensors)
    if not tensors:
        raise ValueError('a grouped collective needs at least one tensor')
    if any(tensor.device != tensors[0].device for tensor in tensors):
        raise HorovodInternalError('Tensors in list must be on same device.')
    return [usable(tensor) for tensor in tensors]


def empty(source, shape):
    """Memory for a result of this dtype where a usable tensor is."""
    return torch.empty(shape, dtype=source.dtype, device=source.device)


def stream_of(source):
    """The function that tells the stream that is current on the device of a usable tensor; None:
    it is on the host. What horovod.common.requests.add wants to know."""
    if source.is_cpu:
        return None
    return functools.partial(_current_stream, source.device)


def _current_stream(device):
    return torch.cuda.current_stream(device).cuda_stream


def describe(name, source, target=None, wire=0):
    """What horovod.common.requests wants to know; no target: the library allocates it."""
    described = (name, source.data_ptr(), None if target is None else target.data_ptr(),
                 source.shape, number(source))
    if source.is_cpu:
        return (*described, DEVICE_CPU, wire)
    return (*described, source.get_device(), wire, _current_stream(source.device))


def write_back(staged, tensor):
    """Ends an operation in place: fills the caller's tensor if it was staged; returns it."""
    if staged is not tensor:
        with torch.no_grad():
            tensor.copy_(staged)
    return tensor


def adopt(request, index, like, device):
    """The output ``index`` that the library allocated, as a tensor without a copy where it
    stays on the host. Its memory is freed with the last view of it."""
    if not like.is_cpu:
        return _copy_out(request, index, like)
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


def _copy_out(request, index, like):
    """The same on a GPU: in memory of torch's, which knows what streams use it."""
    output = empty(like, (request.rows(index), *like.shape[1:]))
    request.copy(index, output.data_ptr())
    return output
