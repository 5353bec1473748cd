# SPDX-License-Identifier: Apache-2.0
"""Gradients in memory that all ranks of a node map, where libhvd adds them up.

Each such gradient is a tensor with a storage of its own within one piece of memory: saving or
sharing it does not include the others, and autograd counts its versions separately. If the gradient
has been replaced by another tensor, as backward does when it was None, the other tensor is copied
to the place before it is submitted.
"""

import os

import torch

from horovod.common import shared

VARIABLE = 'HVD_SHARED_GRADIENTS'
_ALIGNMENT = 64  # a cache line, so that no two ranks write to one when they add up neighbours


def is_wanted(choice):
    """The user's choice: the argument if given, else the environment variable."""
    if choice is not None:
        return bool(choice)
    chosen = os.environ.get(VARIABLE, '')
    if chosen not in ('', '0', '1'):
        raise ValueError(f'{VARIABLE}={chosen}: use 1 for gradients in memory that the ranks of a '
                         'node share, or 0')
    return chosen == '1'


class SharedGradients:
    """The places of one optimizer's gradients. Their memory is freed with this object and the last
    gradient."""

    def __init__(self):
        self._places = {}  # of a parameter: the tensor to be its gradient
        self._pieces = []  # (first address, the one after the last)

    def add(self, parameters):
        """Makes places, in one piece of memory, for the gradients of those parameters that may have
        one. Backward reaches the last parameters first, so their places come first."""
        fitting = [parameter for parameter in reversed(parameters) if _fits(parameter)]
        starts, end = [], 0
        for parameter in fitting:
            starts.append(end)
            count = parameter.numel() * parameter.element_size()
            end += (count + _ALIGNMENT - 1) // _ALIGNMENT * _ALIGNMENT
        if end == 0:
            return
        memory = shared.allocate(end)
        for parameter, start in zip(fitting, starts):
            flat = torch.frombuffer(memory, dtype=parameter.dtype, count=parameter.numel(),
                                    offset=start)
            layout = torch.empty_like(parameter, device='meta')
            self._places[parameter] = flat.as_strided(layout.shape, layout.stride())
        begin = self._places[fitting[0]].data_ptr()
        self._pieces.append((begin, begin + end))

    def settle(self, parameters):
        """Moves the parameters' gradients to their places; a gradient that is None becomes zeros. A
        gradient that has no place, or cannot be moved, stays where it is."""
        for parameter in parameters:
            self._settle_one(parameter)

    def _settle_one(self, parameter):
        gradient, place = parameter.grad, self._places.get(parameter)
        if gradient is place or place is None or not _alike(place, parameter):
            return
        if gradient is None:
            place.zero_()
        elif self._can_move(gradient, place):
            place.copy_(gradient)
        else:
            return
        parameter.grad = place

    def _can_move(self, gradient, place):
        """Whether the gradient may be moved. A sparse one must stay sparse; the copy of one with a
        graph would not be part of the graph; one in shared memory may be in the place of another
        parameter."""
        if gradient.is_sparse or gradient.requires_grad or not _alike(place, gradient):
            return False
        address = gradient.data_ptr()
        return not any(begin <= address < end for begin, end in self._pieces)


def _fits(parameter):
    return parameter.is_cpu and parameter.layout is torch.strided and parameter.numel() > 0


def _alike(place, tensor):
    """Whether the place still fits the tensor. It does not if the model was moved or cast."""
    return (place.shape == tensor.shape and place.dtype is tensor.dtype
            and place.device == tensor.device)
