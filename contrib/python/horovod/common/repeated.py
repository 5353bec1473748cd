# SPDX-License-Identifier: Apache-2.0
"""The fast path for allreduces that a training loop repeats: a tensor is described to libhvd once
and started in every step. For host tensors, all steps use one request of libhvd.

Each name has one description, used by one request at a time. Between requests it is in the table
``_idle``; a caller that pops it from the table is its only user.
"""

import operator
from ctypes import byref, c_double, c_int64, c_void_p

from horovod.common.alone import shared
from horovod.common.arguments import check_op, check_scale
from horovod.common.library import DEVICE_CPU, Tensor, quick
from horovod.common.requests import Request, add, tensor_name

# Limits the memory for names that are not used again; a description takes about 1 KiB.
_MOST_IDLE = 4096

_idle = {}
_start = quick.allreduce_start
_start_again = quick.request_start
_free = quick.request_free


class Repeated(Request):
    """The in-place allreduce of one tensor. The description can be used for another tensor that has
    the same ``likeness``: shape, dtype, device and settings."""

    __slots__ = ('likeness', '_name', '_tensor', '_address', '_described', '_description',
                 '_arguments')

    def __init__(self, name, likeness, shape, dtype, settings, place=(DEVICE_CPU, None)):
        """``settings``: (op, prescale factor, postscale factor, number of the process set, wire
        type or 0). ``place``: the device and, for a GPU, the function that returns the current
        stream."""
        super().__init__(c_void_p(), None, None)
        device, self.stream = place
        op, prescale, postscale, set_id, wire = settings
        self.likeness = likeness
        self._name = name
        self._tensor = self._address = None
        self._described = Tensor(tensor_name('allreduce', name, None).encode(), None, None,
                                 (c_int64 * len(shape))(*shape), len(shape), dtype, device, wire)
        factors = map(c_double, check_scale((prescale, postscale)))
        self._description = byref(self._described)
        self._arguments = (self._description, 1, check_op(op), *factors,
                           operator.index(set_id), byref(self.pointer), None)

    def start(self, tensor, address):
        """Submits the tensor, whose data is at the address, and holds a reference to it until the
        reduction has ended. Returns a handle, or None if libhvd rejects the tensor."""
        if address != self._address:  # a gradient usually keeps its address
            self._described.input = self._described.output = self._address = address
        if self.stream is not None:
            self._described.stream = self.stream()
        self._tensor = tensor
        if self.pointer.value is not None:
            if _start_again(self.pointer, self._description, None) == 0:
                return add(self, self.stream)
            self._free()  # for example, the request belongs to an earlier job
        if _start(*self._arguments) != 0:
            return None
        shared()
        return add(self, self.stream)

    def _free(self):
        # Clear the pointer first: a KeyboardInterrupt between the lines must not lead to a
        # second hvd_request_free.
        ended, self.pointer.value = self.pointer.value, None
        _free(ended)

    def borrowed(self):
        return [self._tensor]

    def result(self):
        tensor, self._tensor = self._tensor, None
        if self.stream is not None:
            self._free()
        if len(_idle) >= _MOST_IDLE:
            _idle.clear()
        _idle[self._name] = self
        return tensor


def take_idle(name):
    """Removes and returns the description that was last used for this name, or returns None."""
    return _idle.pop(name, None)
