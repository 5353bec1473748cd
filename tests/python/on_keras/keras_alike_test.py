# SPDX-License-Identifier: Apache-2.0
"""fit() warns if the ranks train different weights, because the callback that broadcasts them is forgotten.
The warning names the line of fit() in the script."""

import itertools
import linecache
import unittest
import warnings

import numpy
from keras_case import BACKEND, Case, callbacks, hvd, keras

_units = itertools.count(5)  # a job compares weights of the same sizes once


def network(seed, is_built=True):
    keras.utils.set_random_seed(seed)
    layers = [keras.layers.Dense(next(_units), activation='relu'), keras.layers.Dense(1)]
    return keras.Sequential(([keras.layers.InputLayer((4,))] if is_built else []) + layers)


@unittest.skipIf(BACKEND != 'tensorflow', 'Keras compares weights on TensorFlow only')
class Alike(Case):

    def setUp(self):
        hvd.shutdown()  # the callback has ended the comparisons of the job
        hvd.init()

    def warned(self, model, extra=(), **compiled):
        model.compile(hvd.DistributedOptimizer(keras.optimizers.SGD(0.01)), 'mse', **compiled)
        inputs = numpy.ones((16, 4), 'float32')
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter('always')
            model.fit(inputs, inputs[:, :1], batch_size=1, epochs=2, verbose=0, callbacks=list(extra))
        found = [each for each in caught if 'started from different parameters' in str(each.message)]
        for each in found:
            self.assertEqual(each.filename, __file__)
            self.assertIn('model.fit(', linecache.getline(each.filename, each.lineno))
        return len(found)

    def test_a_forgotten_callback_causes_one_warning(self):
        expected = int(hvd.rank() == 0 and hvd.size() > 1)
        self.assertEqual(self.warned(network(hvd.rank())), expected)
        self.assertEqual(self.warned(network(hvd.rank()), run_eagerly=True), expected)
        self.assertEqual(self.warned(network(hvd.rank()), steps_per_execution=4), expected)

    def test_equal_weights_cause_none(self):
        self.assertEqual(self.warned(network(1)), 0)

    def test_the_callback_causes_none(self):
        self.assertEqual(self.warned(network(hvd.rank()), [callbacks.BroadcastGlobalVariablesCallback(0)]), 0)

    def test_a_model_that_is_built_late_is_broadcast_after_its_first_steps(self):
        late = network(hvd.rank(), is_built=False)
        self.assertEqual(
            self.warned(late, [callbacks.BroadcastGlobalVariablesCallback(0)], steps_per_execution=16), 0)
