# SPDX-License-Identifier: Apache-2.0
"""Gradients that live in memory which all ranks of a node map, so that libhvd adds them up there.

Each such gradient is a tensor of its own, with a storage of its own within one piece of memory: who
saves or shares it takes no other along, and autograd counts its versions alone. Where something has
put another tensor in its place, as backward does where the gradient was None, that is copied in
before it is submitted.
"""

import os

import torch

from horovod.common import shared

VARIABLE = 'HVD_SHARED_GRADIENTS'
_ALIGNMENT = 64  # a cache line, so that no two ranks write to one when they add up neighbours


def is_wanted(choice):
    """What the user chose by the argument, else by the variable."""
    if choice is not None:
        return bool(choice)
    chosen = os.environ.get(VARIABLE, '')
    if chosen not in ('', '0', '1'):
        raise ValueError(f'{VARIABLE}={chosen}: use 1 for gradients in memory that the ranks of a '
                         'node share, or 0')
    return chosen == '1'


class SharedGradients:
    """The places of the gradients of one optimizer; their memory is freed when this and the last
    gradient have gone."""

    def __init__(self):
        self._places = {}  # of a parameter: the tensor to be its gradient
        self._pieces = []  # (first address, the one after the last)

    def add(self, parameters):
        """Makes places for the gradients of those parameters that may have one, in one piece.
        Backward comes to the last parameters first, so theirs are at the beginning."""
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
        """Moves the parameters' gradients to their places, and zeros where they are None. What
        has no place, or cannot be in it, is left as it is."""
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
        """Not where it is sparse, and so has to stay; nor where it has a graph, of which the copy
        would be no part; nor where it is in shared memory: there it may be in another's place,
        whose own might end in this one."""
        if gradient.is_sparse or gradient.requires_grad or not _alike(place, gradient):
            return False
        address = gradient.data_ptr()
        return not any(begin <= address < end for begin, end in self._pieces)


def _fits(parameter):
    return parameter.is_cpu and parameter.layout is torch.strided and parameter.numel() > 0


def _alike(place, tensor):
    """Whether the place still is one for such a tensor; not where the model was moved or cast."""
    return (place.shape == tensor.shape and place.dtype is tensor.dtype
            and place.device == tensor.device)
