# SPDX-License-Identifier: Apache-2.0
"""torch tensors as libhvd needs them: dense row-major memory of the host or of a CUDA device.

If libhvd has found a CUDA driver, it uses tensors on a CUDA device in place, on the current stream.
A tensor on another device, or one that is not contiguous, is staged: libhvd reduces a copy, and the
result is copied back when the caller waits for the request.
"""

import ctypes
import functools
import math
import weakref

import torch

from horovod.common.arguments import check_iterable, wrong_type
from horovod.common.exceptions import HorovodInternalError
from horovod.common.library import DEVICE_CPU, DTYPES, OUTPUT_IF_FITS, lib

# The number of each dtype in libhvd, without dtypes that this torch lacks (uint32 before 2.3).
_NUMBERS = {getattr(torch, name): number for name, number in DTYPES.items()
            if hasattr(torch, name)}


_STRIDED = torch.strided


def is_supported(dtype):
    """Whether libhvd can reduce elements of this dtype."""
    return dtype in _NUMBERS


def number(tensor):
    """Returns the number of the tensor's dtype in libhvd. ValueError if it has none."""
    try:
        return _NUMBERS[tensor.dtype]
    except KeyError:
        raise ValueError(f'Tensor type {tensor.type()} is not supported.') from None


def check(tensor, name='tensor'):
    """Raises TypeError unless the argument is a torch.Tensor."""
    if not isinstance(tensor, torch.Tensor):
        raise wrong_type(name, tensor, 'a torch.Tensor')


def check_all(tensors):
    """Returns the tensors of a group as a list. TypeError unless they are tensors."""
    check_iterable('tensors', tensors, 'a list of torch.Tensor')
    tensors = list(tensors)
    for index, each in enumerate(tensors):
        check(each, f'tensors[{index}]')
    return tensors


def is_host(tensor):
    """Whether libhvd can use the tensor's memory in place: it is contiguous, on the host."""
    return tensor.is_cpu and tensor.layout is _STRIDED and tensor.is_contiguous()


@functools.lru_cache(maxsize=None)
def _takes_gpus():
    """Whether libhvd can use the GPUs of this torch. It cannot if torch was built for ROCm."""
    return torch.version.cuda is not None and lib.hvd_cuda_version() > 0


def is_on_gpu(tensor):
    """Whether the tensor is on a GPU that libhvd can use."""
    return tensor.is_cuda and _takes_gpus()


def gpu_of(tensor):
    """Returns the index of the GPU on which libhvd can use the tensor in place, or None."""
    if tensor.layout is _STRIDED and is_on_gpu(tensor) and tensor.is_contiguous():
        return tensor.get_device()
    return None


def usable(tensor):
    """Returns the tensor itself if libhvd can use its memory in place, otherwise a contiguous copy.
    ValueError if the tensor is sparse."""
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
    """Like usable, for the tensors of a group, of which there must be at least one.
    HorovodInternalError if they are on different devices."""
    tensors = check_all(tensors)
    if not tensors:
        raise ValueError('a grouped collective needs at least one tensor')
    if any(tensor.device != tensors[0].device for tensor in tensors):
        raise HorovodInternalError('Tensors in list must be on same device.')
    return [usable(tensor) for tensor in tensors]


def empty(source, shape):
    """Returns an uninitialised tensor for a result, with the dtype and device of the source."""
    return torch.empty(shape, dtype=source.dtype, device=source.device)


def stream_of(source):
    """Returns the stream argument of horovod.common.requests.add: for a tensor on a GPU, a function
    that returns the current stream of its device; for a tensor on the host, None."""
    if source.is_cpu:
        return None
    return _Stream(source.device)


class _Stream:
    """A function that returns the stream of a CUDA device that is current at the time of the call,
    with methods that act on this stream."""

    __slots__ = ('device',)

    def __init__(self, device):
        self.device = device

    def __call__(self):
        return _current_stream(self.device)

    def mark(self):
        """Records an event after the work that the current stream has now; returns it for
        ``follow``."""
        event = torch.cuda.Event()
        event.record(torch.cuda.current_stream(self.device))
        return event

    def follow(self, mark):
        """Makes later work on the current stream wait for the event."""
        torch.cuda.current_stream(self.device).wait_event(mark)

    def record(self, borrowed):
        """Tells torch's allocator that the current stream uses these tensors, which may be in
        nested tuples and lists. When they are freed, their memory is not reused before the stream
        has completed the work that it has then."""
        if isinstance(borrowed, torch.Tensor):
            borrowed.record_stream(torch.cuda.current_stream(self.device))
        elif isinstance(borrowed, (tuple, list)):
            for each in borrowed:
                self.record(each)

    def free_cache(self):
        """Makes torch's allocator give cached memory that no tensor uses back to the device."""
        torch.cuda.empty_cache()


def _current_stream(device):
    return torch.cuda.current_stream(device).cuda_stream


def describe(name, source, target=None, wire=0):
    """Returns the description of a tensor for horovod.common.requests. Without a target, libhvd
    allocates the output."""
    described = (name, source.data_ptr(), None if target is None else target.data_ptr(),
                 source.shape, number(source))
    if source.is_cpu:
        return (*described, DEVICE_CPU, wire)
    return (*described, source.get_device(), wire, _current_stream(source.device))


def write_back(staged, tensor):
    """Ends an operation in place: copies the result into the caller's tensor if it was staged, and
    returns the caller's tensor."""
    if staged is not tensor:
        with torch.no_grad():
            tensor.copy_(staged)
    return tensor


_MOST_SHAPES = 1000
_last_rows = {}  # the number of rows of the last result, by what this rank knows before


class Gathered:
    """The result of a gathering collective, whose number of rows libhvd finds out. ``source``: the
    usable tensor; ``device``: that of the result; ``key``: what else the number may depend on.

    On a GPU, ``memory`` is a tensor with as many rows as the last result from a source of this
    shape, and libhvd writes the result there if it fits. If not, libhvd allocates the result, which
    is then copied to memory of torch's allocator, which knows the streams that use it. A result
    that fills less than half of ``memory`` is copied, too, so that it holds no more than it needs.
    """

    __slots__ = ('_source', '_device', '_key', 'memory')

    def __init__(self, source, device, *key):
        self._source = source
        self._device = device
        self._key = (*key, source.shape, source.dtype, source.device)
        rows = 0 if source.is_cpu else _last_rows.get(self._key, 0)
        self.memory = _room(source, rows) if rows > 0 else None

    def describe(self, name):
        """Returns the description of the tensor for horovod.common.requests."""
        if self.memory is None or self.memory.numel() == 0:
            return describe(name, self._source)
        room = self.memory.numel() * self.memory.element_size()
        return (*describe(name, self._source, self.memory), room | OUTPUT_IF_FITS)

    def result(self, request, index):
        """Returns output ``index`` of the request as a tensor."""
        if self._source.is_cpu:
            return _adopt(request, index, self._source, self._device)
        rows = request.rows(index)
        if len(_last_rows) >= _MOST_SHAPES:
            _last_rows.clear()
        _last_rows[self._key] = rows
        if self.memory is None or self.memory.numel() == 0 or rows > len(self.memory):
            return _copy_out(request, index, self._source, rows)
        if 2 * rows < len(self.memory):
            return self.memory[:rows].clone()
        # Not a slice: autograd forbids in-place changes of a view that a Function returns.
        return self.memory.resize_((rows, *self._source.shape[1:]))


def _room(source, rows):
    """Returns a tensor with this number of rows, or None if the device lacks the memory: an error
    before the collective would let the other ranks wait for this one."""
    try:
        return empty(source, (rows, *source.shape[1:]))
    except RuntimeError:
        return None


def _adopt(request, index, like, device):
    """Returns output ``index``, which libhvd allocated on the host, as a tensor on ``device``. It
    uses libhvd's memory, which is freed together with the last view of the tensor."""
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


def _copy_out(request, index, like, rows):
    """Returns a copy of output ``index``, which libhvd allocated on a GPU."""
    output = empty(like, (rows, *like.shape[1:]))
    request.copy(index, output.data_ptr())
    return output
