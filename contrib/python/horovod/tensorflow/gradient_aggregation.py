# SPDX-License-Identifier: Apache-2.0
"""The passes of a step for optimizers of other projects, under the names that Horovod has. Those of
hvd use horovod.tensorflow.aggregation and horovod._keras.exchange."""

import tensorflow as tf

from horovod._keras import tensorflow_engine
from horovod._keras.exchange import Exchange, Settings
from horovod.common.process_sets import global_process_set
from horovod.tensorflow import aggregation
from horovod.tensorflow.gradients import Reduction


class _Given(Reduction):
    """The reduction that an optimizer brings along."""

    def __init__(self, function, process_set):
        super().__init__(process_set=process_set)
        self._function = function

    def __call__(self, gradients, variables, use_generic_names=False):
        return self._function(gradients, variables)


class LocalGradientAggregationHelper:
    """Adds up the gradients of several passes on this rank, and reduces the sums in the last.

    allreduce_func: the function of lists of gradients and variables that reduces.
    average_aggregated_gradients: divides the sums by the number of passes.
    optimizer_type: one of Keras has its variables made in Keras's session, where there is one.
    sparse_as_dense, rank and name are accepted as Horovod does: sparse gradients are added up
    densely in any case.
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
        """The variable that counts the passes of a step; None before the first one."""
        return self._exchange.aggregation.counter

    def register_local_var(self, var):
        """The gradient of this variable stays this rank's own."""
        self._exchange.keep_local(var)

    def compute_gradients(self, grads, vars):
        """The gradients to step with. In a pass that is not the last one they mean nothing."""
        return self._exchange.reduce(grads, vars)

    def apply_gradients(self, apply_grads_closure, optimizer, *args, **kwargs):
        """Takes the step in the last of its passes; in the others, only counts it."""
        return self._exchange.run(apply_grads_closure, lambda: _count(
            kwargs.get('global_step', getattr(optimizer, 'iterations', None))))


def _count(steps):
    return None if steps is None else tf.group(steps.assign_add(1))
