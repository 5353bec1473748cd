# SPDX-License-Identifier: Apache-2.0
"""Hooks that tell when a gradient is complete, and the reduction of gradients."""

import torch

from horovod.common.basics import Average, Sum
from horovod.common.reductions import choose_op
from horovod.common.requests import synchronize
from horovod.torch.collectives.allreduce import (allreduce_, start_group_in_place,
                                                 start_in_place)
from horovod.torch.collectives.sparse import sparse_allreduce_async
from horovod.torch.compression import prepare, prepare_all


def call_when_accumulated(parameter, function):
    """Calls the function after each backward pass that has added to the parameter's gradient, with
    arguments that it can ignore. Returns a function that removes the hook; the caller keeps it as
    long as the hook is needed, and drops it after the call."""
    if hasattr(parameter, 'register_post_accumulate_grad_hook'):
        return parameter.register_post_accumulate_grad_hook(function).remove
    # torch < 2.1: a hook on the node of the graph that adds to .grad. The returned function
    # holds a reference to the node, which would be freed otherwise.
    node = parameter.expand_as(parameter).grad_fn.next_functions[0][0]
    hook = node.register_hook(function)
    return lambda: (hook.remove(), node)


class Reduction:
    """The user's settings for the reduction of gradients, and functions that start it."""

    def __init__(self, op, compression, predivide_factor, sparse_as_dense, process_set):
        self.process_set = process_set
        self._op = choose_op(op, None)
        self._compression = compression
        self._sparse_as_dense = sparse_as_dense
        self._scale = (1.0, 1.0)
        if op == Average:
            self._scale = (1.0 / predivide_factor, predivide_factor)

    def start(self, parameters, name):
        """Submits the gradients of the parameters as one request. Returns a function that waits
        for it and stores the reduced gradients."""
        if len(parameters) > 1:
            return self._start_group(parameters, name)
        return self._start_one(parameters[0], name)

    def of_loss(self, loss, name):
        """Returns the sum of the losses of all ranks if the gradients are summed, otherwise the
        average of the losses. With ops other than Sum and Average the reduced gradients are not
        those of this average, but the average is the same on all ranks."""
        op = Sum if self._op == Sum else Average
        return allreduce_(torch.as_tensor(loss).detach().clone(), name=name, op=op,
                          process_set=self.process_set)

    def _start_one(self, parameter, name):
        gradient = _gradient(parameter)
        if gradient.is_sparse:
            if not self._sparse_as_dense:
                return self._start_sparse(parameter, name)
            gradient = gradient.to_dense()
        compressed, wire, restore = prepare(self._compression, gradient, self._op)
        handle = start_in_place(_in_rows(compressed, parameter), wire, name, self._op,
                                *self._scale, self.process_set)

        def finish():
            synchronize(handle)
            _store(parameter, restore(compressed))

        return finish

    def _start_group(self, parameters, name):
        dense = [_dense(_gradient(parameter)) for parameter in parameters]
        compressed, wires, restores = prepare_all(self._compression, dense, self._op)
        handle = start_group_in_place(list(map(_in_rows, compressed, parameters)), wires, name,
                                      self._op, *self._scale, self.process_set)

        def finish():
            synchronize(handle)
            for parameter, restore, reduced in zip(parameters, restores, compressed):
                _store(parameter, restore(reduced))

        return finish

    def _start_sparse(self, parameter, name):
        wait = sparse_allreduce_async(parameter.grad, name, self._op, self.process_set)

        def finish():
            parameter.grad = wait()

        return finish


def _gradient(parameter):
    """Returns the parameter's gradient, or new zeros if this rank computed none: another rank may
    have computed one."""
    gradient = parameter.grad
    if gradient is None:
        gradient = parameter.grad = torch.zeros_like(parameter, requires_grad=False)
    return gradient


_CHANNELS_LAST = {4: torch.channels_last, 5: torch.channels_last_3d}


def _in_rows(gradient, parameter):
    """Returns the gradient of a channels-last parameter as a row-major view of the same memory, and
    other gradients unchanged. backward gives a gradient the layout of its parameter, so nothing is
    copied. The extra first dimension makes the shape differ from that of a rank with another
    layout, so that the ranks get an error instead of adding up the wrong elements."""
    last = _CHANNELS_LAST.get(parameter.dim())
    if last is None or parameter.is_contiguous():
        return gradient
    if not parameter.is_contiguous(memory_format=last):
        return gradient
    return gradient.detach().movedim(1, -1).unsqueeze(0)


def _dense(gradient):
    return gradient.to_dense() if gradient.is_sparse else gradient


def _store(parameter, result):
    gradient = parameter.grad
    if result is gradient:
        return
    if gradient.is_sparse:  # keep it sparse: some optimizers accept only sparse gradients
        parameter.grad = result.to_sparse(gradient.sparse_dim())
    else:
        with torch.no_grad():
            gradient.copy_(result)
