# SPDX-License-Identifier: Apache-2.0
"""model.fit on several ranks gives the result of one process with the batches of all ranks."""

import numpy
from keras_case import BACKEND, IS_KERAS3, Case, callbacks, hvd, keras, network, optimizer_kinds

BATCH = 4
STEPS = 3


def data(size):
    """Returns inputs and targets for ``size`` ranks, batch by batch, in the order of one
    process."""
    random = numpy.random.default_rng(7)
    inputs = random.normal(size=(STEPS, size, BATCH, 4)).astype('float32')
    return inputs, numpy.sin(inputs.sum(-1, keepdims=True))


def fit(model, optimizer, inputs, targets, batch, epochs=2, extra=(), **compiled):
    model.compile(optimizer=optimizer, loss='mse', **compiled)
    return model.fit(inputs.reshape(-1, 4), targets.reshape(-1, 1), batch_size=batch,
                     epochs=epochs, shuffle=False, verbose=0, callbacks=list(extra))


class Training(Case):
    def _compare(self, make, **compiled):
        """Trains on all ranks, which begin with different weights, and in one process with the data
        of all ranks. Compares the weights after both."""
        inputs, targets = data(hvd.size())
        alone = network(0)
        fit(alone, make(), inputs, targets, BATCH * hvd.size(), **compiled)
        together = network(hvd.rank())
        fit(together, hvd.DistributedOptimizer(make()), inputs[:, hvd.rank()],
            targets[:, hvd.rank()], BATCH, **compiled,
            extra=[callbacks.BroadcastGlobalVariablesCallback(0)])
        for mine, expected in zip(together.get_weights(), alone.get_weights()):
            self.check(mine, expected, 2e-4)
        self.check_same_everywhere(together.get_weights())

    def test_training_equals_one_process_with_all_data(self):
        for name, module in optimizer_kinds():
            for run_eagerly in (False, True):
                with self.subTest(f'{name}, {"eagerly" if run_eagerly else "as a graph"}'):
                    self._compare(lambda: module.SGD(0.1, momentum=0.9), run_eagerly=run_eagerly)
                    self._compare(lambda: module.Adam(0.01), run_eagerly=run_eagerly)

    def test_training_with_clipped_gradients_equals_one_process(self):
        for name, module in optimizer_kinds():
            with self.subTest(name):
                self._compare(lambda: module.SGD(0.1, clipnorm=0.1))

    def test_passes_without_a_step_change_nothing(self):
        inputs, targets = data(hvd.size())
        for name, module in optimizer_kinds():
            with self.subTest(name):
                # One step after STEPS passes equals one step with all the data.
                alone = network(0)
                fit(alone, module.SGD(0.1), inputs, targets, inputs.size // 4, 1)
                together = network(0)
                optimizer = hvd.DistributedOptimizer(
                    module.SGD(0.1), backward_passes_per_step=STEPS,
                    average_aggregated_gradients=True)
                fit(together, optimizer, inputs[:, hvd.rank()], targets[:, hvd.rank()], BATCH, 1)
                for mine, expected in zip(together.get_weights(), alone.get_weights()):
                    self.check(mine, expected)
                self.assertEqual(int(optimizer.iterations.numpy()), STEPS)

    def test_compiled_training_steps_work(self):
        if not IS_KERAS3 or BACKEND != 'tensorflow':
            self.skipTest('of TensorFlow with Keras 3')
        self._compare(lambda: keras.optimizers.SGD(0.1), jit_compile=True)


class MixedPrecision(Case):
    def setUp(self):
        keras.mixed_precision.set_global_policy('mixed_float16')

    def tearDown(self):
        keras.mixed_precision.set_global_policy('float32')

    def _scale_after(self, wrap, poisoned):
        """Returns the loss scale after one step, in which the gradients of the poisoned rank are
        not finite."""
        model = network(0)
        before = model.get_weights()
        inputs = numpy.ones((4, 4), 'float32')
        # Targets close to the predictions, so that scaled gradients fit into half precision.
        targets = model.predict(inputs, verbose=0).astype('float32') + 0.01
        if hvd.rank() == poisoned:
            targets += numpy.inf
        model.compile(optimizer=wrap(keras.optimizers.SGD(0.1)), loss='mse')
        model.fit(inputs, targets, verbose=0)
        changed = any((a != b).any() for a, b in zip(before, model.get_weights()))
        self.check_same_everywhere(model.get_weights())
        optimizer = model.optimizer
        scale = optimizer.dynamic_scale if IS_KERAS3 else optimizer.loss_scale
        return float(scale.numpy()), changed

    def test_a_rank_without_finite_gradients_makes_all_skip_the_step(self):
        scaler = (keras.optimizers if IS_KERAS3 else keras.mixed_precision).LossScaleOptimizer
        wraps = {'inside': hvd.DistributedOptimizer,
                 'outside': lambda optimizer: hvd.DistributedOptimizer(scaler(optimizer))}
        for name, wrap in wraps.items():
            with self.subTest(name):
                scale, changed = self._scale_after(wrap, None)
                self.assertEqual((scale, changed), (2.0 ** 15, True))
                scale, changed = self._scale_after(wrap, hvd.size() - 1)
                self.assertEqual((scale, changed), (2.0 ** 14, False))
