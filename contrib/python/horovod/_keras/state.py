# SPDX-License-Identifier: Apache-2.0
"""An optimizer's state and hyperparameters, in every generation of Keras."""

from horovod import _keras


class State:
    """Access to the state of an optimizer of the given Keras; has no data of its own."""

    def __init__(self, keras, optimizer):
        self._keras = keras
        self._outer = optimizer
        while hasattr(optimizer, 'inner_optimizer'):  # of a LossScaleOptimizer
            optimizer = optimizer.inner_optimizer
        self._optimizer = optimizer

    def is_built(self):
        """Whether the optimizer has created its variables."""
        optimizer = self._optimizer
        if hasattr(optimizer, '_create_all_weights'):  # keras.optimizers.legacy
            return bool(optimizer.weights)
        # When Keras 3 loads an HDF5 file, it marks an optimizer without variables as built.
        return _is_built(optimizer) and bool(getattr(optimizer, '_trainable_variables', True))

    def build(self, trained):
        """Creates all variables of the optimizer, for the model's trainable variables."""
        if hasattr(self._outer, '_create_all_weights'):  # keras.optimizers.legacy
            self._outer._create_all_weights(trained)
        elif not _is_built(self._outer):
            self._outer.build(trained)

    def variables(self):
        """Returns all variables of the optimizer."""
        found = self._outer.variables  # a method in keras.optimizers.legacy, otherwise a list
        return list(found() if callable(found) else found)

    def hyperparameters(self):
        """Returns variables that variables() lacks in Keras 2: the learning rate, and all
        hyperparameters of keras.optimizers.legacy."""
        legacy = sorted(getattr(self._optimizer, '_hyper', {}).items())
        found = [getattr(self._optimizer, '_learning_rate', None), *(each for _, each in legacy)]
        own = {id(each) for each in self.variables()}
        return [each for each in found if hasattr(each, 'assign') and id(each) not in own]

    @property
    def learning_rate(self):
        """The learning rate of the next step, as a number."""
        rate = self._optimizer.learning_rate
        if isinstance(rate, self._keras.optimizers.schedules.LearningRateSchedule):
            rate = rate(self._optimizer.iterations)
        return float(self._value(rate))

    @learning_rate.setter
    def learning_rate(self, number):
        if self.schedule is not None:
            raise ValueError(
                f'the learning rate of {type(self._optimizer).__name__} is the schedule '
                f'{self.schedule!r}, which a callback cannot change: create the optimizer with a '
                'number as learning_rate, or leave the callback out')
        self._optimizer.learning_rate = number

    @property
    def schedule(self):
        """The schedule of the learning rate, or None if the rate is a number."""
        optimizer = self._optimizer
        rate = getattr(optimizer, '_learning_rate', None)
        if hasattr(optimizer, '_hyper'):  # keras.optimizers.legacy
            rate = optimizer._hyper.get('learning_rate')
        return rate if callable(rate) and not hasattr(rate, 'assign') else None

    def scale_velocities(self, factor):
        """Multiplies the velocities of an optimizer with momentum by the factor. Before the first
        step there are none."""
        if hasattr(self._optimizer, 'momentum'):
            for velocity in self._velocities():
                self._multiply(velocity, factor)

    def _velocities(self):
        optimizer = self._optimizer
        if hasattr(optimizer, '_slots'):  # keras.optimizers.legacy
            return [slots['momentum'] for slots in optimizer._slots.values()
                    if 'momentum' in slots]
        for name in ('momentums', '_momentums'):  # the names in SGD and in RMSprop
            if hasattr(optimizer, name):
                return [each for each in getattr(optimizer, name) if each is not None]
        return []

    def _value(self, variable):
        if _keras.is_keras3(self._keras):
            return self._keras.ops.convert_to_numpy(variable)
        return self._keras.backend.get_value(variable)

    def _multiply(self, variable, factor):
        if _keras.is_keras3(self._keras):
            variable.assign(variable * factor)
        else:
            self._keras.backend.set_value(variable, self._value(variable) * factor)


def _is_built(optimizer):
    return getattr(optimizer, 'built', False) or getattr(optimizer, '_built', False)
