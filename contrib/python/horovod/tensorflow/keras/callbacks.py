# SPDX-License-Identifier: Apache-2.0
"""Callbacks for ``model.fit``."""

from tensorflow import keras

from horovod._keras import callbacks as _callbacks


class _Callback(keras.callbacks.Callback):
    keras = keras


class BroadcastGlobalVariablesCallback(_callbacks.BroadcastGlobalVariables, _Callback):
    """Gives all ranks the root's weights and optimizer state when training begins."""


class MetricAverageCallback(_callbacks.MetricAverage, _Callback):
    """Averages metrics over the ranks at the end of each epoch, in the logs, so that the
    callbacks after it see the average."""


class LearningRateScheduleCallback(_callbacks.LearningRateSchedule, _Callback):
    """Sets the learning rate to initial_lr * multiplier from start_epoch until before end_epoch.

    multiplier: a function of the epoch, or a number m that stands for m ** (epoch - start_epoch).
    staircase: at the beginning of each epoch; otherwise of each batch, with a fraction as epoch.
    momentum_correction: scales the velocities of an optimizer with momentum by the same factor.
    steps_per_epoch: for a data set whose length Keras does not know.
    """


class LearningRateWarmupCallback(_callbacks.LearningRateWarmup, _Callback):
    """Raises the learning rate from initial_lr / hvd.size() to initial_lr within warmup_epochs."""


class BestModelCheckpoint(_callbacks.BestModelCheckpoint, keras.callbacks.ModelCheckpoint):
    """Saves the model of the best epoch to ``filepath``, which may be set after construction."""
