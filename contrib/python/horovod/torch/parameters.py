# SPDX-License-Identifier: Apache-2.0
"""Checks of the names and groups that the user gives to an optimizer's parameters."""

import torch

from horovod.common.reductions import split_evenly


def name_parameters(named_parameters, optimizer):
    """Returns {parameter: name}; empty if the user gave no names. ValueError unless every parameter
    of the optimizer has a unique name."""
    if named_parameters is None:
        return {}
    named = list(named_parameters)
    if not all(isinstance(each, tuple) and len(each) == 2 for each in named):
        raise ValueError('named_parameters should be a sequence of tuples (name, parameter), '
                         'usually produced by model.named_parameters().')
    seen = set()
    duplicates = sorted({name for name, _ in named if name in seen or seen.add(name)})
    if duplicates:
        raise ValueError('Parameter names in named_parameters must be unique. Found '
                         f'duplicates: {", ".join(duplicates)}')
    names = {parameter: name for name, parameter in named}
    for position, group in enumerate(optimizer.param_groups):
        for index, parameter in enumerate(group['params']):
            if names and parameter not in names:
                raise ValueError(
                    'named_parameters was specified, but one or more model parameters were not '
                    f'named: parameter {index} of group {position}, of shape '
                    f'{list(parameter.shape)}')
    return names


def all_names(names, optimizer):
    """Returns {parameter: name} for all parameters of the optimizer; without names from the user,
    the names are those that Horovod gives."""
    return names or {parameter: f'allreduce.noname.{position}.{index}'
                     for position, group in enumerate(optimizer.param_groups)
                     for index, parameter in enumerate(group['params'])}


def make_groups(groups, parameters):
    """Returns tuples of parameters to reduce together, from a number of groups or a list of lists
    of parameters. Parameters in no group are reduced alone. ValueError for other arguments."""
    if groups is None:
        return []
    if isinstance(groups, int) and groups >= 0:
        return split_evenly(parameters, groups)
    if not (isinstance(groups, (list, tuple)) and all(map(_is_group, groups))):
        raise ValueError('groups should be a non-negative integer or a list of list of '
                         f'torch.Tensor, not {groups!r}')
    members = [parameter for group in groups for parameter in group]
    if len(set(members)) < len(members):
        raise ValueError('A parameter can only appear once in groups.')
    return [tuple(group) for group in groups if group]


def _is_group(group):
    return (isinstance(group, (list, tuple))
            and all(isinstance(parameter, torch.Tensor) for parameter in group))
