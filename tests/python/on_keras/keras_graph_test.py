# SPDX-License-Identifier: Apache-2.0
"""Keras 2 in graphs and sessions of TensorFlow 1, as in older scripts."""

import unittest

import numpy
from keras_case import IS_KERAS3, Case, callbacks, hvd, keras, network

if not IS_KERAS3:
    import tensorflow as tf
    tf.compat.v1.disable_eager_execution()

BATCH, STEPS = 4, 3


@unittest.skipIf(IS_KERAS3, 'Keras 3 has no graphs of TensorFlow 1')
class Graph(Case):
    def test_training_equals_one_process_with_all_data(self):
        random = numpy.random.default_rng(7)
        inputs = random.normal(size=(STEPS, hvd.size(), BATCH, 4)).astype('float32')
        targets = inputs.sum(-1, keepdims=True)
        alone = network(0)
        self._fit(alone, keras.optimizers.legacy.SGD(0.1, momentum=0.5), inputs, targets,
                  BATCH * hvd.size())
        together = network(hvd.rank())
        history = self._fit(
            together, hvd.DistributedOptimizer(keras.optimizers.legacy.SGD(0.1, momentum=0.5)),
            inputs[:, hvd.rank()], targets[:, hvd.rank()], BATCH,
            callbacks.BroadcastGlobalVariablesCallback(0), callbacks.MetricAverageCallback(),
            callbacks.LearningRateScheduleCallback(0.1, 1.0))
        for mine, expected in zip(together.get_weights(), alone.get_weights()):
            self.check(mine, expected, 2e-4)
        self.check_same_everywhere([*together.get_weights(), numpy.array(history['loss'])])

    def _fit(self, model, optimizer, inputs, targets, batch, *extra):
        model.compile(optimizer=optimizer, loss='mse')
        return model.fit(inputs.reshape(-1, 4), targets.reshape(-1, 1), batch_size=batch,
                         epochs=2, shuffle=False, verbose=0, callbacks=list(extra)).history

    def test_passes_without_a_step_change_nothing(self):
        inputs = numpy.random.default_rng(hvd.rank()).normal(size=(12, 4)).astype('float32')
        model = network(0)
        optimizer = hvd.DistributedOptimizer(keras.optimizers.legacy.SGD(0.1),
                                             backward_passes_per_step=2)
        model.compile(optimizer=optimizer, loss='mse')
        before = model.get_weights()
        seen = []
        for row in range(4):
            model.train_on_batch(inputs[3 * row:3 * row + 3], numpy.ones((3, 1)))
            seen.append(model.get_weights())
        same = [all((a == b).all() for a, b in zip(*pair))
                for pair in zip([before, *seen], seen)]
        self.assertEqual(same, [True, False, True, False])
        self.check_same_everywhere(seen[-1])

    def test_the_state_of_a_training_is_kept(self):
        model = network(hvd.rank())
        model.compile(loss='mse', optimizer=hvd.DistributedOptimizer(
            keras.optimizers.legacy.Adam(0.1 + hvd.rank()), backward_passes_per_step=2))
        state = hvd.elastic.KerasState(model, epoch=hvd.rank())
        for _ in range(2):  # the second round runs the same nodes of the graph again
            state.sync()
            kept = model.get_weights()
            self.check_same_everywhere(kept)
            self.assertEqual(state.epoch, 0)
            self.check(keras.backend.get_value(model.optimizer.lr), 0.1)
            model.fit(numpy.ones((6, 4)), numpy.ones((6, 1)), batch_size=2, verbose=0)
            self.assertNotEqual(model.get_weights()[0].tolist(), kept[0].tolist())
            state.restore()
            for mine, expected in zip(model.get_weights(), kept):
                self.check(mine, expected)
            state.reset()

    def test_values_are_evaluated(self):
        self.check(hvd.allreduce(numpy.array([float(hvd.rank())])), [(hvd.size() - 1) / 2])
