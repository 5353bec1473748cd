# SPDX-License-Identifier: Apache-2.0
"""Elastic training with Keras: the state, and the callbacks that update and commit it."""

from horovod import _keras
from horovod._keras.callbacks import Callback
from horovod._keras.optimizer import Distributed
from horovod._keras.state import State
from horovod.common.basics import basics
from horovod.common.elastic import ValuesState, begin_anew, run_fn
from horovod.common.objects import broadcast_object


class ModelState(ValuesState):
    """The state of an elastic training: a model, its optimizer, and the keyword arguments, as
    attributes. Their values must be picklable, such as the epoch.

    model: a built model; ValueError otherwise.
    optimizer: the optimizer that trains the model; None: the one that it was compiled with.
    """

    def __init__(self, model, optimizer=None, **kwargs):
        if not model.built:
            raise ValueError('Model must be built first. Run `model.build(input_shape)`.')
        self.model = model
        self.optimizer = getattr(model, 'optimizer', None) if optimizer is None else optimizer
        if self.optimizer is None:
            raise ValueError('the model has no optimizer: compile it first, or pass the optimizer')
        State(self.keras, self.optimizer).build(model.trainable_variables)
        self._values = _keras.engine(self.keras).Values(self._variables)
        super().__init__(broadcast_object, basics.rank, **kwargs)

    def _variables(self):
        """Returns the variables that a step changes, without those of metrics and the seeds of
        layers."""
        state = State(self.keras, self.optimizer)
        return [*self.model.weights, *state.variables(), *state.hyperparameters()]

    def reset(self):
        """Forgets the backward passes of an unfinished step, because new ranks have not made
        them."""
        optimizer = self.optimizer
        while optimizer is not None:
            if isinstance(optimizer, Distributed):
                optimizer.forget_passes()
            optimizer = getattr(optimizer, 'inner_optimizer', None)


class CommitState(Callback):
    """Commits the state after every ``batches_per_commit`` batches and after each epoch."""

    def __init__(self, state, batches_per_commit=1):
        super().__init__()
        self.state = state
        self.batches_per_commit = batches_per_commit
        self.batches_remaining = batches_per_commit

    def on_train_begin(self, logs=None):
        self.batches_remaining = self.batches_per_commit  # equal on all ranks, also on new ones

    def on_batch_end(self, batch, logs=None):
        self.batches_remaining -= 1
        if self.batches_remaining == 0:
            self.batches_remaining = self.batches_per_commit
            self.commit()

    def on_epoch_end(self, epoch, logs=None):
        self.commit()

    def commit(self):
        """Commits the state. Derived classes may override this method."""
        self.state.commit()


class UpdateBatchState(Callback):
    """Updates state.batch, the number of completed batches of this epoch."""

    def __init__(self, state):
        super().__init__()
        self.state = state
        self._before = 0

    def on_train_begin(self, logs=None):
        self._before = self.state.batch

    def on_batch_end(self, batch, logs=None):
        self.state.batch = self._before + batch + 1

    def on_epoch_end(self, epoch, logs=None):
        self.state.batch = self._before = 0


class UpdateEpochState(Callback):
    """Updates state.epoch, the number of completed epochs, also if fit() begins to count at zero
    after a restart."""

    def __init__(self, state):
        super().__init__()
        self.state = state
        self._before = state.epoch
        self._first = None

    def on_train_begin(self, logs=None):
        self._before = self.state.epoch
        self._first = None

    def on_epoch_begin(self, epoch, logs=None):
        if self._first is None:
            self._first = epoch

    def on_epoch_end(self, epoch, logs=None):
        self.state.epoch = self._before + epoch - self._first + 1


# Horovod's names of these classes, which some projects use with isinstance.
CommitStateCallbackImpl = CommitState
UpdateBatchStateCallbackImpl = UpdateBatchState
UpdateEpochStateCallbackImpl = UpdateEpochState


def package(keras, module):
    """Returns the elastic part of the package ``module`` for this Keras: the class of the state,
    the classes of the callbacks, and the decorator run()."""
    failures, base = _keras.engine(keras).failures, keras.callbacks.Callback

    def run(func):
        """Decorator for the training function ``func(state, ...)``, whose first argument is an
        hvd.elastic.KerasState.

        The function starts with the state of rank 0. If a rank dies, it is called again with the
        state of the last commit. If ranks join or leave, it is called again after the commit that
        notices it. Needs an elastic job: ``srun --hvd=elastic`` or ``hvdrun --min-np N``.
        """
        return run_fn(func, begin_anew, failures)

    return [*_keras.classes(keras, module, {
        'KerasState': (ModelState,), 'CommitStateCallback': (CommitState, base),
        'UpdateBatchStateCallback': (UpdateBatchState, base),
        'UpdateEpochStateCallback': (UpdateEpochState, base)}), run]
