# SPDX-License-Identifier: Apache-2.0
"""Broadcasts of models and optimizers, and broadcast and allgather of other objects."""

from collections.abc import Iterable, Mapping

import torch

from horovod.common import alone
from horovod.common.arguments import wrong_type
from horovod.common.basics import size
from horovod.common.objects import allgather_object, broadcast_object
from horovod.common.requests import synchronize
from horovod.common.variables import differing_parameters
from horovod.torch.collectives.broadcast import broadcast_async_


def broadcast_parameters(params, root_rank):
    """Overwrites the tensors of all ranks with those of rank root_rank, in place; collective.

    params: ``model.state_dict()``, ``model.named_parameters()`` or a sequence of tensors.
    ValueError for values that are not tensors, and on all ranks if their names, shapes or types
    differ between ranks.
    """
    if isinstance(params, Mapping):
        named = sorted(params.items())
    elif isinstance(params, torch.Tensor):
        raise ValueError('broadcast_parameters() expects a dict or a sequence of (name, tensor) '
                         'pairs; use broadcast_() for one tensor')
    elif not isinstance(params, Iterable) or isinstance(params, (str, bytes)):
        raise ValueError(f'invalid params of type: {type(params)}: params is {params!r}, expected '
                         'a dict or a sequence of (name, tensor) pairs')
    else:
        named = [each if isinstance(each, tuple) else (None, each) for each in params]
    for name, tensor in named:
        if not isinstance(tensor, (torch.Tensor, type(None))):
            raise ValueError(f'broadcast_parameters() cannot broadcast {name}, which is of type '
                             f'{type(tensor).__name__}: use broadcast_object()')
    _must_be_alike('broadcast_parameters', [each for each in named if each[1] is not None],
                   root_rank)
    _broadcast_all(named, root_rank)


def _must_be_alike(function, named, root_rank):
    """Raises ValueError on all ranks if the tensors differ between ranks. Collective."""
    if size() == 1:
        return
    own = [f'{name or "tensor"} {tuple(tensor.shape)} {tensor.dtype}' for name, tensor in named]
    if all(name is not None for name, _ in named):
        own.sort()  # ranks may list named tensors in different orders
    with alone.checks():
        root = broadcast_object(own, root_rank, function)
        differing = allgather_object(None if own == root else own, function)
    for rank, found in enumerate(differing):
        if found is not None:
            raise ValueError(f'{function}(): '
                             + differing_parameters(rank, found, root, root_rank))


def _broadcast_all(named, root_rank):
    handles = [broadcast_async_(tensor, root_rank, name) for name, tensor in named
               if tensor is not None]
    for handle in handles:
        synchronize(handle)


class _TensorSlot:
    """A placeholder for a tensor in the description of an optimizer's state. The tensor itself is
    broadcast separately."""

    def __init__(self, tensor):
        self.shape, self.dtype = tensor.shape, tensor.dtype
        self.on_host = tensor.device.type == 'cpu'

    def fill(self, current, parameter):
        """Returns the current tensor if its shape, dtype and device are those of the root's tensor,
        otherwise a new tensor."""
        device = torch.device('cpu') if self.on_host else parameter.device
        if (isinstance(current, torch.Tensor) and current.shape == self.shape
                and current.dtype == self.dtype and current.device.type == device.type):
            return current
        return torch.zeros(self.shape, dtype=self.dtype, device=device)


def _describe(optimizer):
    """Returns the description that the root sends to the others: the hyperparameters of each group,
    and the state of each parameter with placeholders for tensors."""
    groups = [{key: value for key, value in group.items() if key != 'params'}
              for group in optimizer.param_groups]
    states = [{key: _TensorSlot(value) if isinstance(value, torch.Tensor) else value
               for key, value in optimizer.state.get(parameter, {}).items()}
              for parameter in _parameters(optimizer)]
    return groups, states


def _named_parameters(optimizer):
    return [(f'parameter {number}.{index}', parameter)
            for number, group in enumerate(optimizer.param_groups)
            for index, parameter in enumerate(group['params'])]


def _parameters(optimizer):
    return [parameter for group in optimizer.param_groups for parameter in group['params']]


def _adopt_groups(optimizer, groups):
    """Sets the hyperparameters to the described ones. Tensors are changed in place."""
    for group, described in zip(optimizer.param_groups, groups):
        for key, value in described.items():
            if isinstance(value, torch.Tensor) and isinstance(group.get(key), torch.Tensor):
                group[key].copy_(value)
            else:
                group[key] = value


def _adopt_states(optimizer, states):
    """Gives each parameter the described state. Returns (name, tensor) for the tensors that the
    root still has to broadcast."""
    to_fill = []
    for index, (parameter, described) in enumerate(zip(_parameters(optimizer), states)):
        current = optimizer.state.pop(parameter, {})
        adopted = {}
        for key, value in described.items():
            if isinstance(value, _TensorSlot):
                value = value.fill(current.get(key), parameter)
                to_fill.append((f'optimizer.{index}.{key}', value))
            adopted[key] = value
        if adopted:
            optimizer.state[parameter] = adopted
    return to_fill


def broadcast_optimizer_state(optimizer, root_rank, model=None):
    """Copies the state and hyperparameters of rank root_rank's optimizer to all ranks; collective.

    The other ranks need not have taken a step: missing state is created. ``model`` is accepted for
    compatibility and has no effect. ValueError for LBFGS, whose state is not per parameter, and on
    all ranks if the optimizers have different parameters.
    """
    # The root sends a description of its state, the other ranks allocate the missing tensors, and
    # then the root broadcasts the tensors.
    if not hasattr(optimizer, 'param_groups'):
        raise wrong_type('optimizer', optimizer, 'a torch.optim.Optimizer')
    if isinstance(optimizer, torch.optim.LBFGS):
        raise ValueError('cannot broadcast torch.optim.LBFGS state')
    _must_be_alike('broadcast_optimizer_state', _named_parameters(optimizer), root_rank)
    groups, states = broadcast_object(_describe(optimizer), root_rank, 'optimizer')
    with torch.no_grad():
        _adopt_groups(optimizer, groups)
        _broadcast_all(_adopt_states(optimizer, states), root_rank)
