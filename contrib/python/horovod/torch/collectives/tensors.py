# SPDX-License-Identifier: Apache-2.0
"""torch tensors as libhvd needs them: dense row-major memory of the host or of a CUDA device.

If libhvd has a CUDA driver, a tensor on a CUDA device is used in place, on the current stream. A
tensor on another device, or a strided one, is staged: its copy is reduced, and the result is copied
back when the caller waits for the request.
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


def is_supported(dtype):
    """Whether libhvd knows elements of this dtype."""
    return dtype in _NUMBERS


def number(tensor):
    """The number of the tensor's dtype in libhvd."""
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
    """Whether libhvd can use CUDA devices of this torch. It cannot with ROCm's torch."""
    return torch.version.cuda is not None and lib.hvd_cuda_version() > 0


def is_on_gpu(tensor):
    """Whether libhvd can use the tensor on its device."""
    return tensor.is_cuda and _takes_gpus()


def gpu_of(tensor):
    """The number of the GPU on which libhvd can use the tensor in place, or None."""
    if tensor.layout is _STRIDED and is_on_gpu(tensor) and tensor.is_contiguous():
        return tensor.get_device()
    return None


def usable(tensor):
    """The tensor itself if libhvd can read and write its memory, otherwise a copy for which it
    can."""
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
    """Memory for a result of the same dtype on the device of a usable tensor."""
    return torch.empty(shape, dtype=source.dtype, device=source.device)


def stream_of(source):
    """For a tensor on a GPU, the function that returns the current stream of its device, as
    horovod.common.requests.add expects it; None for a tensor on the host."""
    if source.is_cpu:
        return None
    return _Stream(source.device)


class _Stream:
    """The current stream of a CUDA device, at the time of each call."""

    __slots__ = ('device',)

    def __init__(self, device):
        self.device = device

    def __call__(self):
        return _current_stream(self.device)

    def mark(self):
        """An event after the work that this stream has been given, for ``follow``."""
        event = torch.cuda.Event()
        event.record(torch.cuda.current_stream(self.device))
        return event

    def follow(self, mark):
        """Makes later work on this stream wait for the event."""
        torch.cuda.current_stream(self.device).wait_event(mark)

    def record(self, borrowed):
        """Tensors in tuples and lists: torch's allocator keeps their memory until this stream has come
        to where it is when they are freed."""
        if isinstance(borrowed, torch.Tensor):
            borrowed.record_stream(torch.cuda.current_stream(self.device))
        elif isinstance(borrowed, (tuple, list)):
            for each in borrowed:
                self.record(each)

    def free_cache(self):
        """Gives memory that torch's allocator holds and no tensor uses back to the device."""
        torch.cuda.empty_cache()


def _current_stream(device):
    return torch.cuda.current_stream(device).cuda_stream


def describe(name, source, target=None, wire=0):
    """The description for horovod.common.requests. Without a target, the library allocates the
    output."""
    described = (name, source.data_ptr(), None if target is None else target.data_ptr(),
                 source.shape, number(source))
    if source.is_cpu:
        return (*described, DEVICE_CPU, wire)
    return (*described, source.get_device(), wire, _current_stream(source.device))


def write_back(staged, tensor):
    """Ends an in-place operation: copies a staged result into the caller's tensor; returns that
    tensor."""
    if staged is not tensor:
        with torch.no_grad():
            tensor.copy_(staged)
    return tensor


def adopt(request, index, like, device):
    """The output ``index`` that the library allocated, as a tensor; without a copy if it stays on
    the host. Its memory is freed with the last view of it."""
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
    """The same on a GPU. The memory is torch's, so that torch knows which streams use it."""
    output = empty(like, (request.rows(index), *like.shape[1:]))
    request.copy(index, output.data_ptr())
    return output
