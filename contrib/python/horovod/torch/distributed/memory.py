# SPDX-License-Identifier: Apache-2.0
"""Tensors of torch.distributed's calls as memory for libhvd: dense, in a dtype that libhvd knows,
and lists of tensors as one block."""

import torch

from horovod.torch.collectives.tensors import is_supported, usable


class Memory:
    """One tensor of a call, as dense memory. For libhvd it is a one-dimensional array, whatever the
    shape of the tensor.

    ``shape``: the length of that array if it is not that of the source, as a tuple. ``room``: the
    size of ``target`` in bytes if libhvd decides how much of it to fill, otherwise 0. ``call``: the
    number of the call.
    """

    __slots__ = ('source', 'target', 'shape', 'room', 'call')

    def __init__(self, source, target=None, shape=None, room=0):
        self.source = source
        self.target = target
        self.shape = (source.numel(),) if shape is None else shape
        self.room = room
        self.call = 0


def seen(dense):
    """Returns a dense tensor in a dtype that libhvd knows, without a copy: complex numbers become
    pairs, and elements of other unknown dtypes become bytes."""
    if is_supported(dense.dtype):
        return dense
    if dense.is_complex():
        return torch.view_as_real(dense.detach())
    return dense.detach().reshape(-1).view(torch.uint8)


def bytes_of(tensor):
    """Returns the number of bytes of the tensor's elements."""
    return tensor.numel() * tensor.element_size()


def write(tensor, value):
    """Copies a result to the caller's tensor, in any thread. torch allows writes to inference
    tensors only in inference mode, and writes to other tensors only outside it."""
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
    """The elements of several tensors as one block: in place if the tensors are adjacent in memory,
    otherwise a copy. ``elements``: a tensor at the start of the block; ``count``: the number of
    elements in the block."""

    def __init__(self, tensors):
        dense = usable(tensors[0])
        if len(tensors) > 1 and not _follow_each_other([dense, *tensors[1:]]):
            dense = torch.cat([each.detach().reshape(-1) for each in tensors])
        self.elements = seen(dense)
        self.count = sum(map(bytes_of, tensors)) // self.elements.element_size()


class Target:
    """The block that receives a result: the tensors themselves if they are adjacent in memory,
    otherwise a buffer that ``copy_out`` copies to them. ``elements``: a tensor at the start of the
    block; ``count``: the number of elements in the block."""

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
