# SPDX-License-Identifier: Apache-2.0
"""When a parameter's gradient is complete, and how a gradient or a group of them is reduced."""

import torch

from horovod.common.basics import Average, Sum
from horovod.common.reductions import choose_op
from horovod.common.requests import synchronize
from horovod.torch.collectives.allreduce import (allreduce_, start_group_in_place,
                                                 start_in_place)
from horovod.torch.collectives.sparse import sparse_allreduce_async
from horovod.torch.compression import prepare, prepare_all


def call_when_accumulated(parameter, function):
    """Calls the function after each backward pass has added to the parameter's gradient; its
    arguments can be ignored. Ends when the returned function is called and dropped."""
    if hasattr(parameter, 'register_post_accumulate_grad_hook'):
        return parameter.register_post_accumulate_grad_hook(function).remove
    # torch < 2.1: a hook on the node of the graph that adds to .grad. The node lives as long
    # as someone holds it, here the returned function.
    node = parameter.expand_as(parameter).grad_fn.next_functions[0][0]
    hook = node.register_hook(function)
    return lambda: (hook.remove(), node)


class Reduction:
    """The user's settings for gradients, and the two halves of a reduction."""

    def __init__(self, op, compression, predivide_factor, sparse_as_dense, process_set):
        self.process_set = process_set
        self._op = choose_op(op, None)
        self._compression = compression
        self._sparse_as_dense = sparse_as_dense
        self._scale = (1.0, 1.0)
        if op == Average:
            self._scale = (1.0 / predivide_factor, predivide_factor)

    def start(self, parameters, name):
        """Submits the gradients as one; returns the function that waits and stores them."""
        if len(parameters) > 1:
            return self._start_group(parameters, name)
        return self._start_one(parameters[0], name)

    def of_loss(self, loss, name):
        """The loss that belongs to the reduced gradients, if they are a sum or an average;
        otherwise the average loss, which is at least the same on all ranks."""
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
    """The gradient. Zeros if this rank computed none, since another rank may have."""
    gradient = parameter.grad
    if gradient is None:
        gradient = parameter.grad = torch.zeros_like(parameter, requires_grad=False)
    return gradient


_CHANNELS_LAST = {4: torch.channels_last, 5: torch.channels_last_3d}


def _in_rows(gradient, parameter):
    """The gradient as a row-major tensor of the same memory, if its parameter has the channels last;
    otherwise itself. backward lays a gradient out as its parameter, so nothing is copied. The
    dimension of 1 in front shows a rank whose parameter is laid out otherwise as one of another
    shape: it must not add up other elements."""
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
    if gradient.is_sparse:  # and stays so: some optimizers take no other
        parameter.grad = result.to_sparse(gradient.sparse_dim())
    else:
        with torch.no_grad():
            gradient.copy_(result)
