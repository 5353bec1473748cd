# SPDX-License-Identifier: Apache-2.0
"""What horovod.tensorflow.keras and horovod.keras share.

Keras exists in two generations: Keras 2 (also as tf_keras), on TensorFlow alone, and Keras 3 on
several backends. Everything here is about Keras; what depends on the backend is in its engine,
a module of this package with the same functions for each: tensorflow_engine and torch_engine.
"""

import importlib

from horovod.common.process_sets import global_process_set

# What scripts of Horovod ask for: versions of TensorFlow that hvd does not support.
_PRE_TF_2_4_0 = False
_IS_TF2 = True

_ENGINES = {'tensorflow': 'horovod._keras.tensorflow_engine',
            'torch': 'horovod._keras.torch_engine'}


class CallableList(list):
    """A list that returns itself when called. The variables of an optimizer are a method in some
    generations of Keras and an attribute in others; scripts use either form."""

    def __call__(self):
        return self


def is_keras3(keras):
    """Whether this module, ``keras`` or ``tf.keras``, is Keras 3."""
    return hasattr(keras, 'ops')


def version(keras):
    """The version as text. The module tf.keras of TensorFlow 2.15 has none."""
    return getattr(keras, '__version__', '2')


def engine(keras):
    """The module with the operations for the backend of this Keras; ImportError for a backend that
    hvd does not support."""
    backend = keras.backend.backend() if is_keras3(keras) else 'tensorflow'
    if backend not in _ENGINES:
        raise ImportError(
            f'Keras {version(keras)} has the backend {backend!r} here, and hvd supports '
            f'{" and ".join(_ENGINES)}: set the environment variable KERAS_BACKEND to one of '
            'them, or the "backend" of ~/.keras/keras.json, before Keras is imported')
    return importlib.import_module(_ENGINES[backend])


def variables(keras, given):
    """The list of variables in an argument that is None, one variable, or several."""
    kind = keras.Variable if is_keras3(keras) else importlib.import_module('tensorflow').Variable
    found = [] if given is None else [given] if isinstance(given, kind) else list(given)
    if not all(isinstance(each, kind) for each in found):
        raise ValueError('All local variables must be of '
                         f'{"keras" if is_keras3(keras) else "tf"}.Variable type, not {given!r}')
    return found


def classes(keras, module, bases):
    """Makes the classes that both packages have, for one Keras: a class for each name, with its
    bases, the documentation of the first base, and the attribute ``keras``."""
    return [type(name, kinds, {'__module__': module, '__doc__': kinds[0].__doc__, 'keras': keras})
            for name, kinds in bases.items()]


def create_distributed_optimizer(keras, optimizer, name, device_dense, device_sparse, compression,
                                 sparse_as_dense, gradient_predivide_factor, op,
                                 backward_passes_per_step=1, average_aggregated_gradients=False,
                                 groups=None, process_set=global_process_set,
                                 scale_local_gradients=True):
    """The DistributedOptimizer of a package, with the same arguments, for the module ``keras``."""
    from horovod._keras.optimizer import distribute  # which needs this module
    return distribute(keras, optimizer, name, device_dense, device_sparse, compression,
                      sparse_as_dense, gradient_predivide_factor, op, backward_passes_per_step,
                      average_aggregated_gradients, groups=groups, process_set=process_set,
                      scale_local_gradients=scale_local_gradients)
