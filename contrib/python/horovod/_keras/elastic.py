# SPDX-License-Identifier: Apache-2.0
"""Elastic training with Keras: the state, and the callbacks that keep it up to date."""

from horovod import _keras
from horovod._keras.callbacks import Callback
from horovod._keras.optimizer import Distributed
from horovod._keras.state import State
from horovod.common.basics import basics
from horovod.common.elastic import ValuesState, begin_anew, run_fn
from horovod.common.objects import broadcast_object


class ModelState(ValuesState):
    """A model, its optimizer, and values that can be pickled, such as the epoch, as attributes.

    model: must have been built, and compiled where no optimizer is given.
    optimizer: the one that trains the model; None: that which the model was compiled with.
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
        """What a step changes, but for metrics and the seeds of layers."""
        state = State(self.keras, self.optimizer)
        return [*self.model.weights, *state.variables(), *state.hyperparameters()]

    def reset(self):
        """Forgets the passes of an unfinished step, which new ranks have not made."""
        optimizer = self.optimizer
        while optimizer is not None:
            if isinstance(optimizer, Distributed):
                optimizer.forget_passes()
            optimizer = getattr(optimizer, 'inner_optimizer', None)


class CommitState(Callback):
    """Commits the state every few batches, and after each epoch."""

    def __init__(self, state, batches_per_commit=1):
        super().__init__()
        self.state = state
        self.batches_per_commit = batches_per_commit
        self.batches_remaining = batches_per_commit

    def on_train_begin(self, logs=None):
        self.batches_remaining = self.batches_per_commit  # on all ranks alike

    def on_batch_end(self, batch, logs=None):
        self.batches_remaining -= 1
        if self.batches_remaining == 0:
            self.batches_remaining = self.batches_per_commit
            self.commit()

    def on_epoch_end(self, epoch, logs=None):
        self.commit()

    def commit(self):
        """May be overridden."""
        self.state.commit()


class UpdateBatchState(Callback):
    """Keeps state.batch, the number of finished batches of this epoch."""

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
    """Keeps state.epoch, the number of finished epochs, even if ``fit`` numbers its epochs
    differently."""

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


# Horovod's names of these, which projects look for with isinstance.
CommitStateCallbackImpl = CommitState
UpdateBatchStateCallbackImpl = UpdateBatchState
UpdateEpochStateCallbackImpl = UpdateEpochState


def package(keras, module):
    """What the package of this name offers for its Keras: the state, the callbacks, and the
    decorator."""
    failures, base = _keras.engine(keras).failures, keras.callbacks.Callback

    def run(func):
        """Decorates ``func(state, ...)``, which trains: it begins with rank 0's state, and begins
        anew from the last commit when a rank dies, or with more ranks when some were let in."""
        return run_fn(func, begin_anew, failures)

    return [*_keras.classes(keras, module, {
        'KerasState': (ModelState,), 'CommitStateCallback': (CommitState, base),
        'UpdateBatchStateCallback': (UpdateBatchState, base),
        'UpdateEpochStateCallback': (UpdateEpochState, base)}), run]
