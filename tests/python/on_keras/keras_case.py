# SPDX-License-Identifier: Apache-2.0
"""Code that the tests of the Keras packages share. HVD_TEST_KERAS names the package to test, and
KERAS_BACKEND the backend of Keras 3."""

import importlib
import os
import unittest

import numpy

PACKAGE = os.environ.get('HVD_TEST_KERAS', 'horovod.keras')
if PACKAGE == 'horovod.tensorflow.keras':
    from tensorflow import keras
else:
    import keras

hvd = importlib.import_module(PACKAGE)
callbacks = importlib.import_module(f'{PACKAGE}.callbacks')
IS_KERAS3 = hasattr(keras, 'ops')
BACKEND = keras.backend.backend() if IS_KERAS3 else 'tensorflow'
if BACKEND == 'tensorflow':
    import tensorflow as tf
else:
    import torch


def variable(values):
    """Returns a trainable variable, of Keras 3 or of TensorFlow."""
    values = numpy.asarray(values, 'float32')
    return keras.Variable(values) if IS_KERAS3 else tf.Variable(values)


def tensor(values):
    values = numpy.asarray(values, 'float32')
    return tf.constant(values) if BACKEND == 'tensorflow' else torch.tensor(values)


def apply(optimizer, gradients, variables):
    """Calls apply_gradients() of the optimizer once. Each gradient is an array or None."""
    gradients = [None if each is None else tensor(each) for each in gradients]
    optimizer.apply_gradients(list(zip(gradients, variables)))


def sgd(**arguments):
    return keras.optimizers.SGD(1.0, **arguments)


def optimizer_kinds():
    """Returns (name, module) for each module of this Keras that has optimizers."""
    kinds = {'optimizers': keras.optimizers}
    if not IS_KERAS3:
        kinds['legacy optimizers'] = keras.optimizers.legacy
    return kinds.items()


def network(seed, inputs=4):
    """Returns a small model whose weights depend on the seed."""
    keras.utils.set_random_seed(seed)
    return keras.Sequential([keras.layers.InputLayer((inputs,)),
                             keras.layers.Dense(5, activation='tanh', name='first'),
                             keras.layers.Dense(1, name='second')])


class Case(unittest.TestCase):
    """A test that runs on all ranks of a job and compares results with values that it computes."""

    @classmethod
    def setUpClass(cls):
        hvd.init(process_sets='dynamic')

    def check(self, result, expected, tolerance=1e-5):
        numpy.testing.assert_allclose(to_numpy(result), numpy.asarray(expected),
                                      rtol=tolerance, atol=tolerance)

    def check_same_everywhere(self, arrays):
        """Asserts that the arrays are exactly equal on all ranks."""
        flat = numpy.concatenate([to_numpy(each).ravel() for each in arrays])
        everybody = to_numpy(hvd.allgather(flat.reshape(1, -1)))
        for rank, other in enumerate(everybody):
            self.assertEqual(flat.tobytes(), other.tobytes(), f'rank {rank} has other values')


def to_numpy(value):
    if hasattr(value, 'value') and not callable(value.value):
        value = value.value
    if hasattr(value, 'detach'):
        value = value.detach()
    return numpy.asarray(value.numpy() if hasattr(value, 'numpy') else value)
