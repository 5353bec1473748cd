# SPDX-License-Identifier: Apache-2.0
"""Allreduces that a training loop repeats: described to libhvd once, started in every step. Of host
tensors one request of libhvd does for all steps.

Each name has one description, which belongs to the request that uses it. Between requests it is in
the table of idle ones; popping it from there makes the caller its only user.
"""

import operator
from ctypes import byref, c_double, c_int64, c_void_p

from horovod.common.arguments import check_op, check_scale
from horovod.common.library import DEVICE_CPU, Tensor, quick
from horovod.common.requests import Request, add, tensor_name

# Names that nobody uses again are to fill no memory; a description takes about 1 KiB.
_MOST_IDLE = 4096

_idle = {}
_start = quick.allreduce_start
_start_again = quick.request_start
_free = quick.request_free


class Repeated(Request):
    """The in-place allreduce of one tensor. ``likeness`` is whatever the description depends on:
    shape, dtype, device and settings."""

    __slots__ = ('likeness', '_name', '_tensor', '_address', '_described', '_description',
                 '_arguments')

    def __init__(self, name, likeness, shape, dtype, settings, place=(DEVICE_CPU, None)):
        """``settings`` are the reduction, prescale and postscale factors, the set's number, and
        the dtype to travel as or 0; ``place`` the device and, of a GPU, the function that tells
        the present stream."""
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
        """Submits the tensor at the address and keeps a reference to it until the reduction ends.
        Returns a handle, or None if libhvd refuses the tensor."""
        if address != self._address:  # mostly the gradient is where it was
            self._described.input = self._described.output = self._address = address
        if self.stream is not None:
            self._described.stream = self.stream()
        self._tensor = tensor
        if self.pointer.value is not None:
            if _start_again(self.pointer, self._description, None) == 0:
                return add(self, self.stream)
            self._free()  # another job has begun, for instance
        if _start(*self._arguments) != 0:
            return None
        return add(self, self.stream)

    def _free(self):
        # In this order: an interrupt in between must not free it twice.
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
    """Removes and returns the description that this name used last, or returns None."""
    return _idle.pop(name, None)
