# SPDX-License-Identifier: Apache-2.0
"""The operations with which the Keras front ends work on Keras's torch backend."""

import contextlib
import warnings

import numpy
import torch

import horovod.torch as hvd
from horovod.common import requests
from horovod.common.arguments import check_count, check_gradient_settings
from horovod.common.basics import Average
from horovod.common.exceptions import HorovodInternalError
from horovod.common.process_sets import UNKNOWN_SET, is_registered
from horovod.common.reductions import choose_op
from horovod.common.variables import must_be_as_saved, must_match
from horovod.torch import Compression
from horovod.torch.collectives.allreduce import start_group_in_place, start_in_place
from horovod.torch.compression import prepare_all
from horovod.torch.parameters import make_groups

init_scope = contextlib.nullcontext
failures = contextlib.nullcontext


def broadcast_follows():
    """Does nothing: the ranks' variables are not compared."""


def prepare(model):
    """Prepares the model for training: nothing to do with torch."""


class Reduction:
    """A function that reduces gradients over all ranks, in place if possible. The arguments are
    those of DistributedOptimizer."""

    def __init__(self, name, op, gradient_predivide_factor, compression, sparse_as_dense,
                 device_dense, device_sparse, num_groups, groups, process_set):
        check_gradient_settings(op, compression, gradient_predivide_factor, process_set)
        check_count('num_groups', num_groups, 0)
        if gradient_predivide_factor != 1.0 and op != Average:
            raise ValueError('gradient_predivide_factor not supported with op != Average')
        if not is_registered(process_set):
            raise ValueError(f'DistributedOptimizer: {UNKNOWN_SET}')
        if num_groups != 0:
            warnings.warn('num_groups is deprecated: use groups', DeprecationWarning, stacklevel=4)
            groups = num_groups if groups is None else groups
        self._name = name
        self._compression = compression
        self._settings = (choose_op(op, None), 1.0 / gradient_predivide_factor,
                          gradient_predivide_factor, process_set)
        self._process_set = process_set
        if isinstance(groups, (list, tuple)):
            groups = [[getattr(each, 'value', None) for each in group]
                      if isinstance(group, (list, tuple)) else group for group in groups]
        if not isinstance(groups, int) or groups < 0:
            make_groups(groups, [])  # raises ValueError if the argument is wrong
        self._groups = groups

    def has_others(self):
        """Whether this rank shares gradients with other ranks."""
        return self._process_set.included() and self._process_set.size() > 1

    def scale_local(self, gradient):
        """Returns the gradient of a local variable, divided by the number of ranks."""
        return gradient / self._process_set.size() if self.has_others() else gradient

    @torch.compiler.disable
    def __call__(self, gradients, variables):
        if not self.has_others():
            return gradients
        dense = [each.to_dense() if each.is_sparse else each for each in gradients]
        compressed, wires, restores = prepare_all(self._compression, dense, self._settings[0])
        parts = self._divide([variable.value for variable in variables])
        waits = [self._start([compressed[index] for index in part],
                             [wires[index] for index in part], part[0]) for part in parts]
        result = list(gradients)
        for part, reduced in zip(parts, _wait_for_all(waits)):
            for index, each in zip(part, reduced):
                result[index] = restores[index](each)
        return result

    def _divide(self, parameters):
        """Divides the gradients into groups that are reduced as one; returns the indices of each
        group."""
        position = {parameter: index for index, parameter in enumerate(parameters)}
        groups = [[position.pop(each) for each in group if each in position]
                  for group in make_groups(self._groups, parameters)]
        return [group for group in groups if group] + [[index] for index in position.values()]

    def _start(self, tensors, wires, number):
        """Submits the tensors as one request. Returns a function that waits for it and returns the
        reduced tensors."""
        name = f'{self._name}.{number}'
        if len(tensors) == 1:
            handle = start_in_place(tensors[0], wires[0], name, *self._settings)
            return lambda: [hvd.synchronize(handle)]
        handle = start_group_in_place(tensors, wires, name, *self._settings)
        return lambda: hvd.synchronize(handle)


def _wait_for_all(waits):
    """Calls all functions, which wait for reductions. Then returns their results or raises the
    first failure."""
    results, failure = [], None
    for wait in waits:
        try:
            results.append(wait())
        except HorovodInternalError as error:
            failure = failure or error
    if failure is not None:
        raise failure
    return results


class Aggregation:
    """Sums of gradients on this rank, before the ranks reduce them."""

    def __init__(self, passes, averages, share):
        """passes: the number of backward passes per step. averages: divide the sums by that number.
        share: a function that reduces a list of gradients over the ranks."""
        self.passes = passes
        self._divisor = passes if averages else 1
        self._share = share
        self._done = 0
        self._sums = None

    def __call__(self, gradients):
        """Adds the gradients to the sums. Returns the reduced sums in the last backward pass of a
        step, otherwise the sums so far."""
        if self.passes == 1:
            return self._share(gradients)
        if self._done % self.passes == 0:
            self._sums = [each.clone() for each in gradients]
        else:
            self._sums = [total + each for total, each in zip(self._sums, gradients)]
        self._done += 1
        if self._done % self.passes != 0:
            return self._sums
        return self._share([total / self._divisor for total in self._sums])

    def forget(self):
        """Drops the sums so far, so that the next backward pass is the first of a step."""
        self._done = 0
        self._sums = None

    def apply_on_last(self, apply, otherwise):
        """Calls ``apply`` in the last backward pass of a step, and ``otherwise`` in the other
        passes."""
        return apply() if self._done % self.passes == 0 else otherwise()


def _tensor(value):
    return torch.as_tensor(value).detach()


def allreduce(value, name=None, average=None, prescale_factor=1.0, postscale_factor=1.0, op=None,
              compression=Compression.none):
    """Returns the reduction of an array, a number or a tensor over all ranks. The default op is
    Average. This function, allgather, broadcast and reducescatter return a torch tensor."""
    return hvd.allreduce(_tensor(value), average, name, compression, op, prescale_factor,
                         postscale_factor)


def allgather(value, name=None):
    """Returns the arrays of all ranks, concatenated along dimension 0 in rank order."""
    return hvd.allgather(_tensor(value), name)


def broadcast(value, root_rank, name=None):
    """Returns the array of rank root_rank. All ranks pass arrays of the same shape and dtype."""
    return hvd.broadcast(_tensor(value), root_rank, name)


def reducescatter(value, name=None, op=Average):
    """Returns this rank's part, along dimension 0, of the reduction over all ranks. op: Average or
    Sum."""
    return hvd.reducescatter(_tensor(value), name, op=op)


def broadcast_global_variables(root_rank):
    """Raises RuntimeError: the function is for graphs of TensorFlow 1 only."""
    raise RuntimeError('hvd.broadcast_global_variables() is for graphs of TensorFlow 1: use '
                       'hvd.callbacks.BroadcastGlobalVariablesCallback')


def average_number(value, name):
    """Returns the mean of a number or an array over the ranks, as a float64 array."""
    tensor = torch.as_tensor(numpy.asarray(value, dtype='float64'))
    return hvd.allreduce(tensor, name=name, op=Average).numpy()


def broadcast_variables(variables, root_rank):
    """Copies the values of Keras variables from rank root_rank to all ranks."""
    hvd.broadcast_parameters(
        [(f'variable.{index}', variable.value.data) for index, variable in enumerate(variables)],
        root_rank)


def _shapes(variables):
    return [list(each.shape) for each in variables]


class Values:
    """Saves and restores the values of Keras variables, and copies them from rank 0.
    ``variables``: a function that returns the list of variables."""

    def __init__(self, variables):
        self._variables = variables
        self.save()

    def save(self):
        """Saves the current values."""
        found = self._variables()
        self._shapes = _shapes(found)
        self._saved = [each.value.detach().clone() for each in found]

    def restore(self):
        """Restores the saved values. ValueError if the variables have changed."""
        found = self._variables()
        must_be_as_saved(_shapes(found), self._shapes)
        with torch.no_grad():
            for variable, value in zip(found, self._saved):
                variable.value.copy_(value)

    def sync(self):
        """Takes over rank 0's values and saves them. Collective."""
        found = self._variables()
        must_match(_shapes(found), 0)
        broadcast_variables(found, 0)
        requests.must_have_landed()
        self.save()
