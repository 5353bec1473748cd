# SPDX-License-Identifier: Apache-2.0
"""broadcast_parameters(), which also handles parameters that are not initialised yet."""

from collections.abc import Mapping

import mxnet as mx
from mxnet.gluon.parameter import DeferredInitializationError, Parameter

from horovod.common.objects import allgather_object, broadcast_object
from horovod.mxnet.collectives import broadcast_


def broadcast_parameters(params, root_rank=0, prefix=None):
    """Overwrites the arrays of all ranks with those of rank root_rank, in place; collective.

    params: ``block.collect_params()``, or a dict whose values are gluon parameters or arrays, such
        as those of Module.get_params(). A parameter whose shape is not known yet is broadcast as
        soon as the first forward pass has initialised it.
    prefix: a string to put before the names by which the ranks match arrays.
    """
    if not (prefix is None or isinstance(prefix, str)):
        raise ValueError(f'prefix must be a string, not {prefix!r}')
    if not (isinstance(params, Mapping) or hasattr(params, 'items')):
        raise ValueError(f'invalid params of type: {type(params)}: params is {params!r}, expected '
                         'a dict such as block.collect_params()')
    sent = []
    for name, value in sorted(params.items()):
        name = f'{prefix or ""}{name}'
        if not isinstance(value, (Parameter, mx.nd.NDArray)):
            raise ValueError(f'broadcast_parameters() cannot broadcast {name}, which is of type '
                             f'{type(value).__name__}: use broadcast_object()')
        sent += _broadcast_now_or_later(value, root_rank, name)
    for tensor in sent:
        tensor.wait_to_read()


def _broadcast_now_or_later(value, root_rank, name):
    """Starts the broadcast of a parameter or an array, or arranges it for later. Returns the arrays
    whose broadcast has started."""
    if not isinstance(value, Parameter):
        return [broadcast_(value, root_rank, name)]
    try:
        tensors = value.list_data()
    except DeferredInitializationError:
        _broadcast_when_initialised(value, root_rank, name)
        return []
    return _broadcast_copies(tensors, root_rank, name)


def _broadcast_copies(tensors, root_rank, name):
    """Broadcasts the first array of a parameter and copies it to those on the other devices."""
    broadcast_(tensors[0], root_rank, name)
    for copy in tensors[1:]:
        tensors[0].copyto(copy)
    return tensors


def _broadcast_when_initialised(parameter, root_rank, name):
    """Replaces the method by which gluon initialises the parameter by one that also broadcasts it.
    The first call restores the original method."""
    initialise = parameter._init_impl

    def initialise_and_broadcast(*args, **kwargs):
        initialise(*args, **kwargs)
        del parameter._init_impl
        _broadcast_copies(parameter.list_data(), root_rank, name)

    parameter._init_impl = initialise_and_broadcast
