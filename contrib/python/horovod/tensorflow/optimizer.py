# SPDX-License-Identifier: Apache-2.0
"""DistributedOptimizer for optimizers of TensorFlow 1. Optimizers of Keras are passed on to
horovod.tensorflow.keras."""

import tensorflow as tf

from horovod.common.arguments import check_count, check_name
from horovod.common.basics import Adasum, Average
from horovod.common.process_sets import global_process_set
from horovod.tensorflow.aggregation import Aggregation
from horovod.tensorflow.collectives.allreduce import allreduce
from horovod.tensorflow.collectives.nodes import in_turn
from horovod.tensorflow.compression import Compression
from horovod.tensorflow.gradients import Reduction, variable_key

_LegacyOptimizer = tf.compat.v1.train.Optimizer


class _WrappedOptimizer(_LegacyOptimizer):
    """An optimizer that forwards its methods to another optimizer."""

    def __init__(self, optimizer, name, use_locking):
        super().__init__(name=name or f'Distributed{type(optimizer).__name__}',
                         use_locking=use_locking)
        self._optimizer = optimizer

    def compute_gradients(self, *args, **kwargs):
        return self._optimizer.compute_gradients(*args, **kwargs)

    def apply_gradients(self, *args, **kwargs):
        return self._optimizer.apply_gradients(*args, **kwargs)

    def _step(self, apply, global_step):
        """Takes the step in the last of its backward passes. The other passes only increment
        global_step, as in Horovod."""
        if self._aggregation.passes == 1:
            return apply()
        return self._aggregation.apply_on_last(
            apply, lambda: None if global_step is None else tf.group(global_step.assign_add(1)))

    def get_slot(self, *args, **kwargs):
        return self._optimizer.get_slot(*args, **kwargs)

    def get_slot_names(self, *args, **kwargs):
        return self._optimizer.get_slot_names(*args, **kwargs)

    def variables(self, *args, **kwargs):
        return self._optimizer.variables(*args, **kwargs)


class _DistributedOptimizer(_WrappedOptimizer):
    """An optimizer that reduces the gradients over all ranks before each step."""

    def __init__(self, optimizer, name, use_locking, reduction, passes, averages,
                 scale_local_gradients):
        super().__init__(optimizer, name, use_locking)
        self._reduction = reduction
        self._scales_local = scale_local_gradients
        self._local = set()
        self._variables = []
        self._aggregation = Aggregation(passes, averages, self._share)

    def register_local_var(self, var):
        """Excludes the gradient of this variable from the reduction."""
        self._local.add(variable_key(var))

    def compute_gradients(self, *args, **kwargs):
        """Like compute_gradients of the wrapped optimizer, but reduces the gradients over all
        ranks."""
        pairs = self._optimizer.compute_gradients(*args, **kwargs)
        self._variables = [variable for gradient, variable in pairs if gradient is not None]
        shared = iter(self._aggregation([gradient for gradient, _ in pairs
                                         if gradient is not None]))
        return [(None if gradient is None else next(shared), variable)
                for gradient, variable in pairs]

    def apply_gradients(self, grads_and_vars, global_step=None, name=None):
        """Takes the step in the last of its backward passes."""
        grads_and_vars = list(grads_and_vars)

        def apply():
            return self._optimizer.apply_gradients(grads_and_vars, global_step, name)

        return self._step(apply, global_step)

    def _share(self, gradients):
        """Reduces the gradients of the variables in self._variables, except those of local
        variables."""
        is_local = [variable_key(each) in self._local for each in self._variables]
        pairs = [pair for pair, own in zip(zip(gradients, self._variables), is_local) if not own]
        shared = iter(self._reduction(*zip(*pairs)) if pairs else ())
        return [(self._reduction.scale_local(each) if self._scales_local else each) if own
                else next(shared) for each, own in zip(gradients, is_local)]


class _DistributedAdasumOptimizer(_WrappedOptimizer):
    """Lets each rank take a step with its own gradients, and combines these steps by Adasum."""

    def __init__(self, optimizer, name, use_locking, passes, averages, settings):
        super().__init__(optimizer, name, use_locking)
        self._settings = settings
        self._aggregation = Aggregation(passes, averages, lambda gradients: gradients)

    def compute_gradients(self, *args, **kwargs):
        pairs = self._optimizer.compute_gradients(*args, **kwargs)
        gradients = self._aggregation([gradient for gradient, _ in pairs])
        return list(zip(gradients, [variable for _, variable in pairs]))

    def apply_gradients(self, grads_and_vars, global_step=None, name=None):
        grads_and_vars = list(grads_and_vars)

        def apply():
            return self._apply(grads_and_vars, global_step, name)

        return self._step(apply, global_step)

    def _apply(self, grads_and_vars, global_step, name):
        variables = [variable for gradient, variable in grads_and_vars if gradient is not None]
        before = [tf.identity(variable) for variable in variables]
        with tf.control_dependencies(before):
            own_step = self._optimizer.apply_gradients(grads_and_vars, global_step, name)
        with tf.control_dependencies([own_step] if own_step is not None else []):
            steps = [tf.convert_to_tensor(variable.read_value()) - old
                     for variable, old in zip(variables, before)]
        reduced = in_turn(steps, lambda step: allreduce(step, op=Adasum, **self._settings))
        return tf.group(*[tf.compat.v1.assign(variable, old + step)
                          for variable, old, step in zip(variables, before, reduced)])


def DistributedOptimizer(optimizer, name=None, use_locking=False, device_dense='',
                         device_sparse='', compression=Compression.none, sparse_as_dense=False,
                         backward_passes_per_step=1, op=Average, gradient_predivide_factor=1.0,
                         average_aggregated_gradients=False, num_groups=0, groups=None,
                         process_set=global_process_set, scale_local_gradients=True):
    """Returns an optimizer that reduces the gradients over all ranks before each step. All ranks
    must make it with the same arguments.

    optimizer: a tf.compat.v1.train.Optimizer or a Keras optimizer.
    name, use_locking: of the returned optimizer, as for tf.compat.v1.train.Optimizer.
    backward_passes_per_step: the number of passes whose gradients each rank adds up before the
        ranks reduce them; average_aggregated_gradients divides the sums by that number.
    op: how to reduce gradients: Average, Sum, Min, Max or Product. With Adasum the ranks combine
        the steps that they take with their own gradients; the number of ranks must be a power of
        two. Keras optimizers support Average and Sum.

    The other arguments are those of DistributedGradientTape. To exclude a variable from the
    reduction, call register_local_var() of the result.
    """
    check_name(name)
    check_count('backward_passes_per_step', backward_passes_per_step, 1)
    if not isinstance(optimizer, _LegacyOptimizer):
        return _of_keras(optimizer, name, device_dense, device_sparse, compression,
                         sparse_as_dense, backward_passes_per_step, op,
                         gradient_predivide_factor, average_aggregated_gradients, num_groups,
                         groups, process_set, scale_local_gradients)
    reduction = Reduction(op, gradient_predivide_factor, compression, sparse_as_dense,
                          device_dense, device_sparse, num_groups, groups, process_set)
    if op == Adasum:
        return _DistributedAdasumOptimizer(
            optimizer, name, use_locking, backward_passes_per_step,
            average_aggregated_gradients,
            {'device_dense': device_dense, 'device_sparse': device_sparse,
             'compression': compression, 'process_set': process_set})
    return _DistributedOptimizer(optimizer, name, use_locking, reduction,
                                 backward_passes_per_step, average_aggregated_gradients,
                                 scale_local_gradients)


def _of_keras(optimizer, name, device_dense, device_sparse, compression, sparse_as_dense, passes,
              op, predivide_factor, averages, num_groups, groups, process_set, scales_local):
    if not isinstance(optimizer, tf.keras.optimizers.Optimizer) and \
            not hasattr(optimizer, 'apply_gradients'):
        raise ValueError('Provided optimizer doesn\'t inherit from either legacy TensorFlow or '
                         f'Keras optimizer: optimizer is {optimizer!r}, expected such as '
                         'tf.keras.optimizers.SGD(0.01)')
    if op == Adasum:
        raise ValueError('op == Adasum is not supported yet with Keras')
    import horovod.tensorflow.keras as keras  # here: the import takes a second
    return keras.DistributedOptimizer(
        optimizer, name=name, device_dense=device_dense, device_sparse=device_sparse,
        compression=compression, sparse_as_dense=sparse_as_dense,
        backward_passes_per_step=passes, op=op, gradient_predivide_factor=predivide_factor,
        average_aggregated_gradients=averages, num_groups=num_groups, groups=groups,
        process_set=process_set, scale_local_gradients=scales_local)
