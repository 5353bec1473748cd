# SPDX-License-Identifier: Apache-2.0
"""DistributedOptimizer: the user's optimizer, with gradients that are reduced before each step.

The class of the result is derived from the class of the user's optimizer and has the same name, so
that plain Keras can load a saved model. Gradients are reduced at the point where a strategy of
TensorFlow would add up those of its replicas: before they are clipped, and before
LossScaleOptimizer checks that they are finite, so that the check has the same result on all ranks.
"""

import types

from horovod import _keras
from horovod._keras.exchange import Exchange, Settings
from horovod._keras.state import State
from horovod.common.arguments import check_count, check_name, check_op
from horovod.common.basics import Average, Sum
from horovod.common.process_sets import global_process_set


class Distributed:
    """The base of all distributed optimizers.

    The settings are attributes of the class, so that ``from_config`` works. The exchange is stored
    in the ``__dict__`` of the instance, where Keras neither tracks nor saves it.
    """

    _hvd_keras = None
    _hvd_engine = None
    _hvd_settings = None
    _hvd_is_asked_early = False

    @property
    def _hvd_exchange(self):
        exchange = self.__dict__.get('_hvd_exchange')
        if exchange is None:
            exchange = Exchange(self._hvd_engine, self._hvd_settings)
            self.__dict__['_hvd_exchange'] = exchange
        return exchange

    def register_local_var(self, var):
        """Excludes the gradient of a trainable variable, or of several, from the reduction. With
        ``scale_local_gradients`` each rank divides its own gradient by the number of ranks."""
        for variable in _keras.variables(self._hvd_keras, var):
            self._hvd_exchange.keep_local(variable)

    @property
    def _agg_helper(self):
        """The object that accumulates the gradients of a step's backward passes and counts the
        passes in ``counter``; None if a step has only one pass."""
        exchange = self._hvd_exchange
        return exchange.aggregation if exchange.has_passes() else None

    def _allreduce(self, grads, vars):
        """Returns the reduced gradients, for scripts that need them before the step. From then on
        the steps of this optimizer do not reduce gradients again, as in Horovod."""
        self.__dict__['_hvd_is_asked_early'] = True
        return self._hvd_exchange.reduce(grads, vars)

    def get_gradients(self, loss, params):
        """Like get_gradients of the given optimizer, but reduces the gradients over all ranks."""
        gradients = super().get_gradients(loss, params)
        # Do not reduce yet for a LossScaleOptimizer, whose scale may change between two backward
        # passes.
        return gradients if _has_loss_scale(self._hvd_keras) else self._allreduce(gradients, params)

    def _hvd_asked(self, grads_and_vars):
        gradients, variables = zip(*grads_and_vars)
        return list(zip(self._allreduce(gradients, variables), variables))

    def forget_passes(self):
        """Drops the backward passes of an unfinished step, so that the next pass is the first of a
        step."""
        self._hvd_exchange.forget_passes()

    def _hvd_reduce(self, grads_and_vars):
        if self._hvd_is_asked_early:
            return list(grads_and_vars)
        gradients, variables = zip(*grads_and_vars)
        return list(zip(self._hvd_exchange.reduce(gradients, variables), variables))

    def _hvd_run(self, step):
        """Takes the step in the last of its backward passes. The other passes only increment the
        optimizer's iterations, as in Horovod."""
        if not self._hvd_exchange.has_passes():
            return step()
        with self._hvd_engine.init_scope():
            iterations = getattr(self, 'inner_optimizer', self).iterations
        return self._hvd_exchange.run(step, lambda: iterations.assign_add(1))


class _Keras3(Distributed):
    """For Keras 3, whose optimizers take all gradients in ``apply``."""

    @property
    def variables(self):
        return _keras.CallableList(super().variables)

    def apply(self, grads, trainable_variables=None):
        variables = self._trainable_variables
        if trainable_variables is not None:
            variables = trainable_variables = list(trainable_variables)
        if len(grads) == 0 or len(grads) != len(variables):
            return super().apply(grads, trainable_variables)  # Keras ignores it or raises an error
        if not self.built:
            self.build(variables)
        reduced = [each for each, _ in self._hvd_reduce(zip(grads, variables))]
        step = super().apply
        return self._hvd_run(lambda: step(reduced, trainable_variables))


class _Keras2(Distributed):
    """For Keras 2. A LossScaleOptimizer around this optimizer first calls ``aggregate_gradients``
    and then, if the gradients are finite, ``apply_gradients`` without aggregation."""

    def _compute_gradients(self, loss, var_list, grad_loss=None, tape=None):
        return self._hvd_asked(self.compute_gradients(loss, var_list, tape))

    def aggregate_gradients(self, grads_and_vars):
        return self._hvd_reduce(grads_and_vars)

    def apply_gradients(self, grads_and_vars, name=None, skip_gradients_aggregation=False,
                        **kwargs):
        grads_and_vars = list(grads_and_vars)
        aggregates = kwargs.pop('experimental_aggregate_gradients', True)
        if aggregates and not skip_gradients_aggregation and grads_and_vars:
            grads_and_vars = self._hvd_reduce(grads_and_vars)
        step = super().apply_gradients
        return self._hvd_run(lambda: step(grads_and_vars, name=name,
                                          skip_gradients_aggregation=True))


class _Legacy(Distributed):
    """For the older optimizers of Keras 2, in keras.optimizers.legacy."""

    @property
    def variables(self):
        return _keras.CallableList(super().variables())

    def minimize(self, loss, var_list, grad_loss=None, name=None, tape=None):
        pairs = super()._compute_gradients(loss, var_list, grad_loss, tape)
        return self.apply_gradients(pairs, name=name)

    def _compute_gradients(self, loss, var_list, grad_loss=None, tape=None):
        pairs = super()._compute_gradients(loss, var_list, grad_loss, tape)
        if _has_loss_scale(self._hvd_keras):
            return pairs  # the scale of a LossScaleOptimizer may change between two passes
        return self._hvd_asked(pairs)

    def _aggregate_gradients(self, grads_and_vars):
        return self._hvd_reduce(grads_and_vars)

    def apply_gradients(self, grads_and_vars, name=None, experimental_aggregate_gradients=True):
        grads_and_vars = list(grads_and_vars)
        if experimental_aggregate_gradients and grads_and_vars:
            grads_and_vars = self._hvd_reduce(grads_and_vars)
        step = super().apply_gradients
        return self._hvd_run(lambda: step(grads_and_vars, name=name,
                                          experimental_aggregate_gradients=False))


def distribute(keras, optimizer, name=None, device_dense='', device_sparse='', compression=None,
               sparse_as_dense=False, gradient_predivide_factor=1.0, op=Average,
               backward_passes_per_step=1, average_aggregated_gradients=False, num_groups=0,
               groups=None, process_set=global_process_set, scale_local_gradients=True):
    """Returns an optimizer that reduces the gradients over all ranks before each step.

    Its class is derived from the class of the given optimizer. If the given optimizer has state
    already, both share this state; otherwise they are independent. All ranks must make it with the
    same arguments.

    optimizer: a Keras optimizer.
    name: the first part of the names by which the ranks match gradients.
    device_dense, device_sparse: accepted for compatibility, without effect.
    compression: a member of hvd.Compression: the type in which gradients travel between ranks.
    sparse_as_dense: reduces tf.IndexedSlices as dense tensors.
    gradient_predivide_factor: splits the division of Average: the gradients are multiplied by 1/f
        before the sum and by f/size after it, to avoid overflow.
    op: Average or Sum.
    backward_passes_per_step: the number of batches per step; their gradients are added up, or
        averaged with ``average_aggregated_gradients``.
    groups: a number of groups, or lists of variables; the gradients of a group are reduced as one.
        num_groups is the deprecated name of this argument.
    process_set: the ranks that share gradients; on other ranks gradients are not changed.
    scale_local_gradients: divides the gradients of local variables by the number of ranks; see
        register_local_var() of the result.

    Raises ValueError or TypeError for wrong arguments.
    """
    mixin = _mixin(keras, optimizer)
    if isinstance(optimizer, Distributed):
        raise ValueError('the optimizer is a DistributedOptimizer already')
    if check_op(op) not in (Average, Sum):
        raise ValueError('op currently only supports Average and Sum')
    check_name(name)
    check_count('backward_passes_per_step', backward_passes_per_step, 1)
    if backward_passes_per_step > 1 and getattr(optimizer, 'gradient_accumulation_steps', None):
        raise ValueError('backward_passes_per_step and the gradient_accumulation_steps of the '
                         'optimizer do the same: use one of them')
    engine = _keras.engine(keras)
    reduction = engine.Reduction(
        name or f'Distributed{type(optimizer).__name__}', op, gradient_predivide_factor,
        compression or engine.Compression.none, sparse_as_dense, device_dense, device_sparse,
        num_groups, groups, process_set)
    settings = Settings(reduction, backward_passes_per_step, average_aggregated_gradients,
                        scale_local_gradients)
    return _derived(keras, mixin, _with_loss_scale(keras, optimizer), settings)


def distribute_partially(keras, optimizer, local_layers, **arguments):
    """Like distribute(), but each rank uses its own gradients for the local layers.
    ``local_layers``: a built layer, or a list of them; ValueError otherwise."""
    kind = keras.layers.Layer
    layers = [local_layers] if isinstance(local_layers, kind) else list(local_layers or ())
    if not all(isinstance(layer, kind) for layer in layers):
        raise ValueError('All local layers must be of tf.keras.layers.Layer type.')
    result = distribute(keras, optimizer, **arguments)
    for layer in layers:
        if not layer.built:
            raise ValueError(f'the local layer {layer.name!r} has no variables yet: build it, or '
                             'call the model once, before PartialDistributedOptimizer')
        for variable in layer.trainable_weights:
            result.register_local_var(variable)
    return result


def _mixin(keras, optimizer):
    """Returns the class to mix in. ValueError if this is not an optimizer of this Keras."""
    if _keras.is_keras3(keras):
        if isinstance(optimizer, keras.optimizers.Optimizer):
            return _Keras3
    elif hasattr(optimizer, 'aggregate_gradients'):
        return _Keras2
    elif hasattr(optimizer, '_aggregate_gradients'):
        return _Legacy
    raise ValueError(f'optimizer is {optimizer!r}, of {type(optimizer).__module__}: expected one '
                     f'of Keras {_keras.version(keras)}, such as keras.optimizers.SGD(); torch '
                     'optimizers are for horovod.torch')


def _with_loss_scale(keras, optimizer):
    """Wraps the optimizer in a LossScaleOptimizer now if Keras 3 would wrap the
    DistributedOptimizer later. A LossScaleOptimizer around the DistributedOptimizer would not call
    it on a rank whose gradients are not finite, and the other ranks would wait for that rank."""
    if not _keras.is_keras3(keras) or not _has_loss_scale(keras):
        return optimizer
    wrapper = keras.optimizers.LossScaleOptimizer
    return optimizer if isinstance(optimizer, wrapper) else wrapper(optimizer)


def _has_loss_scale(keras):
    """Whether Keras puts the optimizers of models into LossScaleOptimizers."""
    policy = (keras.config.dtype_policy() if _keras.is_keras3(keras)
              else keras.mixed_precision.global_policy())
    return policy.name == 'mixed_float16'


def _derived(keras, mixin, optimizer, settings):
    mixed = _derived_class(keras, mixin, type(optimizer), settings)
    state = State(keras, optimizer)
    if state.is_built():
        result = object.__new__(mixed)
        result.__dict__.update(vars(optimizer))
        return result
    config = optimizer.get_config()
    if state.schedule is not None and 'learning_rate' in config:
        config['learning_rate'] = state.schedule  # Keras may not find the schedule's class
    result = mixed.from_config(config)
    for name, value in vars(optimizer).items():
        # Copy attributes that are not part of the config, such as exclusions from weight decay.
        result.__dict__.setdefault(name, value)
    return result


def _derived_class(keras, mixin, kind, settings):
    """Makes the class of the DistributedOptimizer. It has the module and name under which Keras
    saves and finds the class of the user's optimizer."""
    module, name = _public_module(keras, kind), kind.__name__
    if module is None:
        module, name = kind.__module__, keras.utils.get_registered_name(kind)
    body = {'__module__': module, '__doc__': kind.__doc__, '_hvd_keras': keras,
            '_hvd_engine': _keras.engine(keras), '_hvd_settings': settings}
    return types.new_class(name, (mixin, kind), exec_body=lambda space: space.update(body))


def _public_module(keras, kind):
    """Returns the module of Keras that exports the class, or a base class of the same name; None if
    there is none."""
    for name, module in (('keras.optimizers', keras.optimizers),
                         ('keras.optimizers.legacy', keras.optimizers.legacy)):
        exported = getattr(module, kind.__name__, None)
        if exported in kind.__mro__ and kind.__module__.split('.')[0] in ('keras', 'tf_keras'):
            return name
    return None
