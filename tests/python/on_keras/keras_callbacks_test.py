# SPDX-License-Identifier: Apache-2.0
"""The callbacks of the Keras packages give the right weights, learning rates and logs."""

import os
import tempfile

import numpy
from keras_case import Case, callbacks, hvd, keras, network, optimizer_kinds, to_numpy

STEPS = 4
INPUTS = numpy.linspace(-1, 1, 2 * STEPS * 4, dtype='float32').reshape(-1, 4)
TARGETS = INPUTS.sum(1, keepdims=True)


def fit(model, *extra, epochs=1, optimizer=None, **arguments):
    if optimizer is not None:
        model.compile(optimizer=optimizer, loss='mse')
    return model.fit(INPUTS, TARGETS, batch_size=2, epochs=epochs, shuffle=False, verbose=0,
                     callbacks=list(extra), **arguments)


class Recorder(keras.callbacks.Callback):
    """Records the learning rate of each batch and the logs of each epoch."""

    def __init__(self):
        super().__init__()
        self.rates = []
        self.logs = []

    def on_train_batch_end(self, batch, logs=None):
        self.rates.append(float(to_numpy(self.model.optimizer.learning_rate)))

    def on_epoch_end(self, epoch, logs=None):
        self.logs.append(dict(logs))


class Broadcast(Case):
    def test_all_ranks_take_the_first_step_from_the_roots_state(self):
        root = hvd.size() - 1
        for name, module in optimizer_kinds():
            with self.subTest(name):
                expected = network(root)
                fit(expected, optimizer=module.SGD(0.1, momentum=0.5))
                model = network(hvd.rank())
                fit(model, callbacks.BroadcastGlobalVariablesCallback(root),
                    optimizer=hvd.DistributedOptimizer(module.SGD(0.1, momentum=0.5)))
                for mine, other in zip(model.get_weights(), expected.get_weights()):
                    self.check(mine, other)

    def test_the_state_of_the_optimizer_is_broadcast(self):
        for name, module in optimizer_kinds():
            with self.subTest(name):
                model = network(0)
                optimizer = hvd.DistributedOptimizer(module.SGD(0.0, momentum=0.5))
                fit(model, optimizer=optimizer, epochs=2)
                found = optimizer.variables
                for variable in found() if callable(found) else found:
                    if 'iter' in variable.name:
                        variable.assign(100 + hvd.rank())
                fit(model, callbacks.BroadcastGlobalVariablesCallback(0))
                self.assertEqual(int(to_numpy(optimizer.iterations)), 100 + STEPS)

    def test_local_variables_stay(self):
        model = network(hvd.rank())
        kernel = model.get_layer('first').kernel
        own = to_numpy(kernel).copy()
        fit(model, callbacks.BroadcastGlobalVariablesCallback(0, local_variables=kernel),
            optimizer=keras.optimizers.SGD(0.0))
        self.check(kernel, own)
        self.check_same_everywhere([to_numpy(model.get_layer('second').kernel)])
        with self.assertRaisesRegex(ValueError, 'local variables must be of'):
            callbacks.BroadcastGlobalVariablesCallback(0, local_variables=[1.0])

    def test_a_model_without_input_shape_is_broadcast_too(self):
        keras.utils.set_random_seed(hvd.rank())
        model = keras.Sequential([keras.layers.Dense(3), keras.layers.Dense(1)])
        fit(model, callbacks.BroadcastGlobalVariablesCallback(0),
            optimizer=hvd.DistributedOptimizer(keras.optimizers.SGD(0.1, momentum=0.5)))
        self.check_same_everywhere(model.get_weights())

    def test_models_that_differ_are_refused(self):
        if hvd.size() < 2:
            self.skipTest('needs two ranks')
        model = network(0)
        if hvd.rank() == 0:
            model.add(keras.layers.Dense(1))
        with self.assertRaisesRegex(ValueError, 'differ between ranks'):
            fit(model, callbacks.BroadcastGlobalVariablesCallback(0),
                optimizer=hvd.DistributedOptimizer(keras.optimizers.SGD(0.1)))


class Metrics(Case):
    def test_logs_have_the_mean_over_the_ranks(self):
        class Giver(keras.callbacks.Callback):
            def on_epoch_end(self, epoch, logs=None):
                logs['mine'] = hvd.rank() + 10.0 * epoch

        model, recorder = network(0), Recorder()
        history = fit(model, Giver(), callbacks.MetricAverageCallback(), recorder, epochs=2,
                      optimizer=keras.optimizers.SGD(0.1 * hvd.rank()))
        mean = (hvd.size() - 1) / 2
        self.check([logs['mine'] for logs in recorder.logs], [mean, 10 + mean])
        self.check_same_everywhere([[logs['loss'] for logs in recorder.logs]])
        self.assertEqual(history.history['mine'], [mean, 10 + mean])

    def test_metrics_that_differ_are_refused(self):
        if hvd.size() < 2:
            self.skipTest('needs two ranks')
        validation = (INPUTS, TARGETS) if hvd.rank() == 0 else None
        with self.assertRaisesRegex(ValueError, "rank 0 has the metrics .*'val_loss'"):
            fit(network(0), callbacks.MetricAverageCallback(), validation_data=validation,
                optimizer=keras.optimizers.SGD(0.1))


class Schedule(Case):
    def _rates(self, *extra, epochs=3):
        recorder = Recorder()
        fit(network(0), *extra, recorder, epochs=epochs, optimizer=keras.optimizers.SGD(0.5))
        self.check([logs['lr'] for logs in recorder.logs], recorder.rates[STEPS - 1::STEPS])
        return recorder.rates

    def test_a_number_is_a_decay_by_epoch(self):
        rates = self._rates(callbacks.LearningRateScheduleCallback(0.5, 0.1, start_epoch=1,
                                                                   end_epoch=3), epochs=4)
        self.check(rates, numpy.repeat([0.5, 0.5, 0.05, 0.05], STEPS))

    def test_a_function_sets_the_rate_of_an_epoch(self):
        rates = self._rates(callbacks.LearningRateScheduleCallback(0.5, lambda epoch: epoch + 1))
        self.check(rates, numpy.repeat([0.5, 1.0, 1.5], STEPS))

    def test_a_function_sets_the_rate_of_each_batch(self):
        for steps in (None, 2 * STEPS):
            rates = self._rates(callbacks.LearningRateScheduleCallback(
                1.0, lambda epoch: epoch + 1, staircase=False, steps_per_epoch=steps))
            expected = [1 + epoch + batch / (steps or STEPS)
                        for epoch in range(3) for batch in range(STEPS)]
            self.check(rates, expected)

    def test_warmup_ends_at_the_initial_rate(self):
        rates = self._rates(callbacks.LearningRateWarmupCallback(0.5, warmup_epochs=2))
        done = numpy.minimum(numpy.arange(1, 3 * STEPS + 1) / (2 * STEPS), 1)
        self.check(rates, 0.5 * (1 + done * (hvd.size() - 1)) / hvd.size())

    def test_a_model_without_input_shape_is_scheduled_from_its_first_batch(self):
        for name, module in optimizer_kinds():
            for kind in (module.SGD(0.1, momentum=0.5), module.Adam(0.1)):
                for schedule in (callbacks.LearningRateWarmupCallback(0.5, warmup_epochs=1),
                                 callbacks.LearningRateScheduleCallback(0.25, lambda epoch: 2)):
                    with self.subTest(f'{name}, {type(kind).__name__}, {type(schedule).__name__}'):
                        model = keras.Sequential([keras.layers.Dense(3), keras.layers.Dense(1)])
                        recorder = Recorder()
                        fit(model, schedule, recorder, epochs=2,
                            optimizer=type(kind).from_config(kind.get_config()))
                        self.check(recorder.rates[STEPS - 1:], [0.5] * (STEPS + 1))

    def test_a_rate_that_cannot_be_set_is_refused(self):
        decay = keras.optimizers.schedules.ExponentialDecay(0.1, 10, 0.9)
        for name, module in optimizer_kinds():
            with self.subTest(name), self.assertRaisesRegex(ValueError, 'is the schedule'):
                fit(network(0), callbacks.LearningRateScheduleCallback(0.5, 0.1),
                    optimizer=module.SGD(decay))
        with self.assertRaisesRegex(ValueError, '`initial_lr` is required'):
            callbacks.LearningRateScheduleCallback(None, 0.1)

    def test_momentum_correction_scales_velocities(self):
        # The second epoch halves the rate, so the velocities of the first are halved, too.
        for name, module in optimizer_kinds():
            for correct in (True, False):
                with self.subTest(f'{name}, correct {correct}'):
                    model = network(0, inputs=4)
                    fit(model, callbacks.LearningRateScheduleCallback(
                        0.1, 0.5, momentum_correction=correct), epochs=2,
                        optimizer=module.SGD(0.1, momentum=0.9))
                    for mine, expected in zip(model.get_weights(), _by_hand(correct)):
                        self.check(mine, expected)


def _by_hand(correct):
    """Returns the weights after two epochs with momentum, the second one with half the rate."""
    model = network(0)
    model.compile(loss='mse')
    weights, velocities = model.get_weights(), [0.0] * 4
    for step in range(2 * STEPS):
        rate = 0.1 if step < STEPS else 0.05
        if step == STEPS and correct:
            velocities = [velocity / 2 for velocity in velocities]
        rows = slice(2 * (step % STEPS), 2 * (step % STEPS) + 2)
        gradients = _gradients(weights, INPUTS[rows], TARGETS[rows])
        velocities = [0.9 * velocity - rate * gradient
                      for velocity, gradient in zip(velocities, gradients)]
        weights = [weight + velocity for weight, velocity in zip(weights, velocities)]
    return weights


def _gradients(weights, inputs, targets):
    """Returns the gradients of the mean squared error of ``network``."""
    kernel, bias, out_kernel, out_bias = weights
    hidden = numpy.tanh(inputs @ kernel + bias)
    error = 2 * (hidden @ out_kernel + out_bias - targets) / len(inputs)
    back = (error @ out_kernel.T) * (1 - hidden ** 2)
    return [inputs.T @ back, back.sum(0), hidden.T @ error, error.sum(0)]


class Checkpoint(Case):
    def test_the_best_epoch_is_saved(self):
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, 'best.weights.h5')
            saver = callbacks.BestModelCheckpoint(monitor='loss', save_weights_only=True)
            saver.filepath = path
            model = network(0)
            # The first epoch is the best, because the second one diverges.
            wild = callbacks.LearningRateScheduleCallback(0.01, lambda epoch: 1 + 1000 * epoch)
            after_first = network(0)
            fit(after_first, optimizer=keras.optimizers.SGD(0.01))
            fit(model, wild, saver, epochs=2, optimizer=keras.optimizers.SGD(0.01))
            model.load_weights(path)
            for mine, expected in zip(model.get_weights(), after_first.get_weights()):
                self.check(mine, expected)

    def test_a_checkpoint_without_a_path_is_rejected(self):
        with self.assertRaisesRegex(ValueError, 'no filepath'):
            fit(network(0), callbacks.BestModelCheckpoint(), optimizer=keras.optimizers.SGD(0.1))
