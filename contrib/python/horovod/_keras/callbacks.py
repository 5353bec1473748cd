# SPDX-License-Identifier: Apache-2.0
"""The callbacks of both packages, as mix-ins for the Callback class of a Keras."""

from horovod import _keras
from horovod._keras.optimizer import Distributed
from horovod._keras.state import State
from horovod.common import membership
from horovod.common.basics import basics
from horovod.common.objects import allgather_object
from horovod.common.variables import differing


class Callback:
    """The base of all callbacks. Prepares the model for hvd."""

    keras = None  # the module of Keras; the classes that package() makes set it

    def __init__(self):
        super().__init__()
        if self.keras is None:
            raise TypeError(f'{type(self).__name__} must be derived from a class of '
                            'horovod.keras.callbacks or horovod.tensorflow.keras.callbacks')
        self._engine = _keras.engine(self.keras)

    def set_model(self, model):
        super().set_model(model)
        self._engine.prepare(model)
        optimizer = getattr(model, 'optimizer', None)
        inner = getattr(optimizer, 'inner_optimizer', None)
        if (_keras.is_keras3(self.keras) and isinstance(inner, Distributed)
                and not isinstance(optimizer, Distributed)):
            raise ValueError(
                'the model has put a LossScaleOptimizer around the DistributedOptimizer, where a '
                'rank whose gradients are not finite would leave the others waiting: put it '
                'inside, hvd.DistributedOptimizer(keras.optimizers.LossScaleOptimizer(optimizer))')

    def _state(self):
        return State(self.keras, self.model.optimizer)


class BroadcastGlobalVariables(Callback):
    """Copies the weights and the optimizer state of rank ``root_rank`` to all ranks when training
    begins: before the first step if the model is built by then, otherwise after it.

    local_variables: variables that are not broadcast. ``device`` is accepted for compatibility and
    has no effect. Training fails with ValueError if the ranks' models differ.
    """

    def __init__(self, root_rank, device='', local_variables=None):
        super().__init__()
        self.root_rank = root_rank
        self.device = device
        self.broadcast_done = False
        self._job = None
        self._local = []
        for variable in _keras.variables(self.keras, local_variables):
            self.register_local_var(variable)

    def register_local_var(self, var):
        """Excludes a variable from the broadcast: each rank keeps its own value."""
        self._local.append(var)

    def on_train_begin(self, logs=None):
        self._engine.broadcast_follows()
        if self._job is not membership.numbers():  # an elastic job has restarted with new ranks
            self._job, self.broadcast_done = membership.numbers(), False
        if not self.broadcast_done:
            if self.model.built:
                self._state().build(self.model.trainable_variables)
            self._broadcast(must=False)

    def on_batch_end(self, batch, logs=None):
        if not self.broadcast_done:
            self._broadcast(must=True)

    def _broadcast(self, must):
        """Broadcasts if all ranks have built the same model. ValueError if their models differ, or
        with ``must`` if a rank has not built its model."""
        variables = self._variables()
        shapes = [tuple(variable.shape) for variable in variables]
        everybody = allgather_object((self.model.built, shapes), 'BroadcastGlobalVariables')
        if all(each == (True, shapes) for each in everybody):
            self._engine.broadcast_variables(variables, self.root_rank)
            self.broadcast_done = True
        elif must or all(built for built, _ in everybody):
            raise ValueError(differing(shapes, everybody[self.root_rank][1], self.root_rank))

    def _variables(self):
        """Returns the weights and the optimizer's state, without local variables. The state of
        metrics and the seeds of layers are not among them: each rank has its own."""
        found = [*(self.model.weights if self.model.built else ()), *self._state().variables()]
        return [variable for variable in found
                if not any(variable is each for each in self._local)]


class MetricAverage(Callback):
    """Averages the metrics over the ranks at the end of each epoch. Callbacks that come later in
    the list see the averages in their logs. ValueError if the ranks have different metrics."""

    def __init__(self, device=''):
        super().__init__()
        self.device = device

    def on_epoch_end(self, epoch, logs=None):
        names = sorted(logs or {})
        everybody = allgather_object(names, 'MetricAverage')
        for rank, each in enumerate(everybody):
            if each != everybody[0]:
                raise ValueError(
                    f'MetricAverageCallback: rank 0 has the metrics {everybody[0]} and rank '
                    f'{rank} has {each}: give all ranks the same metrics and validation data')
        for name in names:
            mean = self._engine.average_number(logs[name], f'metric.{name}')
            logs[name] = mean if mean.ndim else float(mean)


class LearningRateSchedule(Callback):
    """Sets the learning rate to initial_lr * multiplier(epoch) from start_epoch (included) to
    end_epoch (excluded; None: to the end of training).

    multiplier: a function of the epoch, or a number m, which means m ** (epoch - start_epoch).
    staircase: True sets the rate at the beginning of each epoch; False at each batch, with a
        fractional epoch.
    momentum_correction: also scales the velocities of an optimizer with momentum when the rate
        changes.
    steps_per_epoch: needed without staircase if Keras does not know the length of the data set.
    """

    def __init__(self, initial_lr, multiplier, start_epoch=0, end_epoch=None, staircase=True,
                 momentum_correction=True, steps_per_epoch=None):
        super().__init__()
        if initial_lr is None:
            raise ValueError('Parameter `initial_lr` is required')
        self.initial_lr = initial_lr
        self.start_epoch = start_epoch
        self.end_epoch = end_epoch
        self.staircase = staircase
        self.momentum_correction = momentum_correction
        self.steps_per_epoch = steps_per_epoch
        self.current_epoch = None
        if callable(multiplier):
            self.multiplier = multiplier
        else:
            self.multiplier = lambda epoch: multiplier ** (epoch - start_epoch)

    def on_train_begin(self, logs=None):
        if not self.staircase and not self.steps_per_epoch:
            self.steps_per_epoch = self._steps()

    def _steps(self):
        steps = self.params.get('steps')
        if not steps:
            raise ValueError('Could not autodetect the number of steps per epoch. Please specify '
                             f'the steps_per_epoch parameter to the {type(self).__name__}() or '
                             'upgrade to the latest version of Keras.')
        return steps

    def on_epoch_begin(self, epoch, logs=None):
        self.current_epoch = epoch

    def on_batch_begin(self, batch, logs=None):
        epoch = self.current_epoch
        if epoch < self.start_epoch or (self.end_epoch is not None and epoch >= self.end_epoch):
            return
        if not self.staircase:
            self._adjust(epoch + batch / self.steps_per_epoch)
        elif batch == 0:
            self._adjust(epoch)

    def _adjust(self, epoch):
        """Sets the learning rate for the epoch. A velocity is a sum of past steps, each multiplied
        by the learning rate of its time. The momentum correction scales the sum as if all these
        steps had used the new rate."""
        state = self._state()
        old, new = state.learning_rate, self.initial_lr * self.multiplier(epoch)
        state.learning_rate = new
        if self.momentum_correction and old not in (0, new):
            state.scale_velocities(new / old)

    def on_epoch_end(self, epoch, logs=None):
        if logs is not None:
            logs['lr'] = self._state().learning_rate


class LearningRateWarmup(LearningRateSchedule):
    """Raises the learning rate from initial_lr / hvd.size() to initial_lr over the first
    warmup_epochs epochs, by the same amount at each batch. verbose=1 prints the end on rank 0."""

    def __init__(self, initial_lr, warmup_epochs=5, momentum_correction=True,
                 steps_per_epoch=None, verbose=0):
        def multiplier(epoch):
            # Counts this batch as completed: the last batch of an epoch then gets the rate that
            # belongs to a whole number of epochs.
            done = (epoch + 1 / self.steps_per_epoch) / warmup_epochs
            return (1 + done * (basics.size() - 1)) / basics.size()

        super().__init__(initial_lr, multiplier, 0, warmup_epochs, False, momentum_correction,
                         steps_per_epoch)
        self.verbose = verbose

    def on_epoch_end(self, epoch, logs=None):
        super().on_epoch_end(epoch, logs)
        if epoch == self.end_epoch - 1 and self.verbose > 0 and basics.rank() == 0:
            print(f'\nEpoch {epoch + 1}: finished gradual learning rate warmup to '
                  f'{self._state().learning_rate:g}.')


class BestModelCheckpoint:
    """A keras.callbacks.ModelCheckpoint that saves only the model of the best epoch, to
    ``filepath``. The attribute ``filepath`` may be set after construction; ValueError if it is not
    set when training begins."""

    def __init__(self, monitor='val_loss', verbose=0, save_weights_only=False, mode='auto',
                 save_freq='epoch', filepath=None):
        # A placeholder: Keras 3 checks the ending of the path in its constructor.
        unset = 'unset.weights.h5' if save_weights_only else 'unset.keras'
        super().__init__(filepath=filepath or unset, monitor=monitor, verbose=verbose,
                         save_best_only=True, save_weights_only=save_weights_only, mode=mode,
                         save_freq=save_freq)
        self.filepath = filepath

    def on_train_begin(self, logs=None):
        if self.filepath is None:
            raise ValueError('BestModelCheckpoint has no filepath: pass one to it, or set '
                             'callback.filepath before fit()')
        super().on_train_begin(logs)


# Horovod's names of these classes, which some projects use with isinstance.
BroadcastGlobalVariablesCallbackImpl = BroadcastGlobalVariables
MetricAverageCallbackImpl = MetricAverage
LearningRateScheduleCallbackImpl = LearningRateSchedule
LearningRateWarmupCallbackImpl = LearningRateWarmup


def package(keras, module):
    """Returns the callback classes of the package ``module`` for this Keras."""
    base = keras.callbacks.Callback
    return _keras.classes(keras, module, {
        'BroadcastGlobalVariablesCallback': (BroadcastGlobalVariables, base),
        'MetricAverageCallback': (MetricAverage, base),
        'LearningRateScheduleCallback': (LearningRateSchedule, base),
        'LearningRateWarmupCallback': (LearningRateWarmup, base),
        'BestModelCheckpoint': (BestModelCheckpoint, keras.callbacks.ModelCheckpoint)})
