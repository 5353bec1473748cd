# SPDX-License-Identifier: Apache-2.0
"""Models that are saved with a distributed optimizer: plain Keras can load them, and load_model of
hvd continues their training with a distributed optimizer. Each rank saves a file of its own."""

import os
import tempfile

import numpy
from keras_case import IS_KERAS3, Case, hvd, keras, network, optimizer_kinds, to_numpy

INPUTS = numpy.linspace(-1, 1, 16, dtype='float32').reshape(4, 4)
TARGETS = INPUTS.sum(1, keepdims=True)
FORMATS = ('model.keras', 'model.h5')


class Halved(keras.optimizers.SGD):
    """An optimizer that is not part of Keras."""

    def get_config(self):
        return super().get_config()


def trained(optimizer):
    model = network(0)
    model.compile(optimizer=hvd.DistributedOptimizer(optimizer),
                  loss=keras.losses.MeanSquaredError())
    more(model)
    return model


def more(model):
    model.fit(INPUTS * (1 + hvd.rank()), TARGETS, batch_size=2, shuffle=False, verbose=0)


def keeps_state(module, path):
    """Whether Keras itself restores the optimizer's state from this format."""
    if IS_KERAS3:
        return not path.endswith('.h5')
    if module is keras.optimizers.legacy:
        return path.endswith('.h5')
    return not path.endswith('saved_model')


def can_be_loaded(optimizer, path):
    """Whether Keras can load its own model with this optimizer from this format. Keras 2.13 and
    2.14 call a method that legacy optimizers lack."""
    model = network(0)
    model.compile(optimizer=optimizer, loss=keras.losses.MeanSquaredError())
    model.save(path)
    try:
        keras.models.load_model(path)
    except AttributeError:
        return False
    return True


def state(model):
    found = model.optimizer.variables
    return [to_numpy(each).copy() for each in (found() if callable(found) else found)]


class Saving(Case):
    def setUp(self):
        self._directory = tempfile.TemporaryDirectory()
        self.addCleanup(self._directory.cleanup)

    def _path(self, name):
        return os.path.join(self._directory.name, name)

    def _everywhere(self, name):
        """Yields (subtest, class of the optimizer, its module, path) for each kind of optimizer and
        each format."""
        for kind, module in optimizer_kinds():
            formats = FORMATS if IS_KERAS3 else (*FORMATS, 'saved_model')
            for file in formats:
                yield (self.subTest(f'{kind}, {file}'), getattr(module, name), module,
                       self._path(file))

    def _needs_loading(self, optimizer, path):
        if not can_be_loaded(optimizer, path):
            self.skipTest('this Keras itself does not load such a model')

    def test_plain_keras_loads_the_model_and_its_optimizer(self):
        for case, kind, _, path in self._everywhere('Adam'):
            with case:
                self._needs_loading(kind(0.25), path)
                trained(kind(0.25)).save(path)
                loaded = keras.models.load_model(path)
                alone = network(0)
                alone.compile(optimizer=kind(0.25), loss=keras.losses.MeanSquaredError())
                more(alone)
                alone.save(path)
                alone = keras.models.load_model(path)
                self.assertEqual(type(loaded.optimizer).__name__, 'Adam')
                self.assertFalse(hasattr(loaded.optimizer, 'register_local_var'))
                self.check(loaded.optimizer.learning_rate, 0.25)
                # Not all formats of Keras keep the state.
                self.assertEqual(int(to_numpy(loaded.optimizer.iterations)),
                                 int(to_numpy(alone.optimizer.iterations)))

    def test_training_continues_after_load_model(self):
        for case, kind, module, path in self._everywhere('SGD'):
            with case:
                self._needs_loading(kind(0.1), path)
                model = trained(kind(0.1, momentum=0.9))
                model.save(path)
                loaded = hvd.load_model(path)
                self.assertTrue(hasattr(loaded.optimizer, 'register_local_var'))
                more(model)
                more(loaded)
                self.check_same_everywhere(loaded.get_weights())
                if not keeps_state(module, path):
                    continue
                for mine, expected in zip(loaded.get_weights(), model.get_weights()):
                    self.check(mine, expected)
                for mine, expected in zip(state(loaded), state(model)):
                    self.check(mine, expected)

    def test_custom_optimizers_and_compression_are_taken(self):
        path = self._path('model.keras')
        trained(Halved(0.1)).save(path)
        loaded = hvd.load_model(path, custom_optimizers=[Halved],
                                compression=hvd.Compression.fp16)
        self.assertIsInstance(loaded.optimizer, Halved)
        more(loaded)
        self.check_same_everywhere(loaded.get_weights())

    def test_a_registered_optimizer_is_found_by_its_name(self):
        path = self._path('model.keras')
        kind = keras.utils.register_keras_serializable('mine')(type('Own', (Halved,), {}))
        trained(kind(0.1)).save(path)
        self.assertIs(type(keras.models.load_model(path).optimizer), kind)

    def test_a_model_without_optimizer_is_loaded_as_it_is(self):
        path = self._path('model.keras')
        network(0).save(path)
        self.assertIsNone(getattr(hvd.load_model(path), 'optimizer', None))
