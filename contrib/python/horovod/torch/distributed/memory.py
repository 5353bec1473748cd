# SPDX-License-Identifier: Apache-2.0
"""Tensors of torch.distributed's calls as memory for libhvd: dense, in a dtype that it knows, and
lists of tensors as one piece."""

import torch

from horovod.torch.collectives.tensors import is_supported, usable


class Memory:
    """One tensor of a call: dense memory, which libhvd sees as a row of elements whatever the tensor's
    shape; the row's length (``shape``) if it is not the source's; and the bytes of ``target`` if libhvd
    decides how many of them it fills. ``call``: the number of the call."""

    __slots__ = ('source', 'target', 'shape', 'room', 'call')

    def __init__(self, source, target=None, shape=None, room=0):
        self.source = source
        self.target = target
        self.shape = (source.numel(),) if shape is None else shape
        self.room = room
        self.call = 0


def seen(dense):
    """The elements of a dense tensor in a dtype of libhvd: complex numbers as pairs, others that it
    does not know as bytes."""
    if is_supported(dense.dtype):
        return dense
    if dense.is_complex():
        return torch.view_as_real(dense.detach())
    return dense.detach().reshape(-1).view(torch.uint8)


def bytes_of(tensor):
    return tensor.numel() * tensor.element_size()


def write(tensor, value):
    """Copies a result to a tensor of the caller's, in any thread. Inference tensors are written to in
    inference mode only, and others must not get parts that were made in it."""
    with torch.inference_mode(tensor.is_inference()), torch.no_grad():
        tensor.copy_(value)


def _follow_each_other(tensors):
    end = tensors[0].data_ptr()
    for each in tensors:
        if each.data_ptr() != end or not each.is_contiguous():
            return False
        end += bytes_of(each)
    return True


class Source:
    """The elements of all of the tensors, one after the other: in place if they lie so, else a
    copy. ``elements``: that memory, from its beginning; ``count`` of them."""

    def __init__(self, tensors):
        dense = usable(tensors[0])
        if len(tensors) > 1 and not _follow_each_other([dense, *tensors[1:]]):
            dense = torch.cat([each.detach().reshape(-1) for each in tensors])
        self.elements = seen(dense)
        self.count = sum(map(bytes_of, tensors)) // self.elements.element_size()


class Target:
    """Where a result goes: the tensors themselves if they are one dense piece, else memory that
    ``copy_out`` copies to them. ``elements``: that memory, from its beginning; ``count`` of them."""

    def __init__(self, tensors):
        self._tensors = tensors
        self._staged = None
        first = tensors[0]
        dense = usable(first)
        if dense is not first or not _follow_each_other(tensors):
            self._staged = dense = dense.new_empty(sum(each.numel() for each in tensors))
        self.elements = seen(dense)
        self.bytes = sum(map(bytes_of, tensors))
        self.count = self.bytes // self.elements.element_size()
        self.copy_out = None if self._staged is None else self._copy_out

    def _copy_out(self):
        pieces = self._staged.split([each.numel() for each in self._tensors])
        for each, piece in zip(self._tensors, pieces):
            write(each, piece.view(each.shape))
