# SPDX-License-Identifier: Apache-2.0
"""Horovod's LocalGradientAggregationHelper, for optimizers of other projects. The optimizers of hvd
use horovod.tensorflow.aggregation and horovod._keras.exchange instead."""

import tensorflow as tf

from horovod._keras import tensorflow_engine
from horovod._keras.exchange import Exchange, Settings
from horovod.common.process_sets import global_process_set
from horovod.tensorflow import aggregation
from horovod.tensorflow.gradients import Reduction


class _Given(Reduction):
    """Reduces gradients with a function that the optimizer provides."""

    def __init__(self, function, process_set):
        super().__init__(process_set=process_set)
        self._function = function

    def __call__(self, gradients, variables, use_generic_names=False):
        return self._function(gradients, variables)


class LocalGradientAggregationHelper:
    """Adds up the gradients of several backward passes on this rank, and reduces the sums in the
    last pass.

    backward_passes_per_step: the number of backward passes per step.
    allreduce_func: a function of a list of gradients and a list of variables that reduces the
        gradients.
    average_aggregated_gradients: divides the sums by the number of passes.
    optimizer_type: _OPTIMIZER_TYPE_KERAS for an optimizer of Keras, whose variables are initialised
        in Keras's session in a graph of TensorFlow 1; otherwise _OPTIMIZER_TYPE_LEGACY.
    sparse_as_dense, rank, name: accepted for compatibility, without effect; sparse gradients are
        always added up as dense ones.
    """

    _OPTIMIZER_TYPE_KERAS = 'optimizer_type_keras'
    _OPTIMIZER_TYPE_LEGACY = 'optimizer_type_legacy'

    def __init__(self, backward_passes_per_step, allreduce_func, sparse_as_dense,
                 average_aggregated_gradients, rank, optimizer_type,
                 process_set=global_process_set, scale_local_gradients=True, name=''):
        engine = (tensorflow_engine if optimizer_type == self._OPTIMIZER_TYPE_KERAS
                  else aggregation)
        self.backward_passes_per_step = backward_passes_per_step
        self._exchange = Exchange(engine, Settings(
            _Given(allreduce_func, process_set), backward_passes_per_step,
            average_aggregated_gradients, scale_local_gradients))

    @property
    def counter(self):
        """The variable that counts the backward passes of a step; None before the first pass."""
        return self._exchange.aggregation.counter

    def register_local_var(self, var):
        """Excludes the gradient of this variable from the reduction."""
        self._exchange.keep_local(var)

    def compute_gradients(self, grads, vars):
        """Returns the gradients for the step. Use them only in the last backward pass of a step."""
        return self._exchange.reduce(grads, vars)

    def apply_gradients(self, apply_grads_closure, optimizer, *args, **kwargs):
        """Takes the step in the last of its backward passes. The other passes only increment the
        step counter: the keyword argument global_step or the optimizer's iterations."""
        return self._exchange.run(apply_grads_closure, lambda: _count(
            kwargs.get('global_step', getattr(optimizer, 'iterations', None))))


def _count(steps):
    return None if steps is None else tf.group(steps.assign_add(1))
