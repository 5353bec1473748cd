# SPDX-License-Identifier: Apache-2.0
"""Code that horovod.tensorflow.keras and horovod.keras share.

There are two generations of Keras: Keras 2 (also as tf_keras), which needs TensorFlow, and Keras 3,
which has several backends. Code that depends on the backend is in the modules tensorflow_engine and
torch_engine, which have the same functions.
"""

import importlib

from horovod.common.process_sets import global_process_set

# Some scripts read these: whether TensorFlow is older than 2.4, and whether it is TensorFlow 2. hvd
# supports newer versions only.
_PRE_TF_2_4_0 = False
_IS_TF2 = True

_ENGINES = {'tensorflow': 'horovod._keras.tensorflow_engine',
            'torch': 'horovod._keras.torch_engine'}


class CallableList(list):
    """A list that returns itself when called: the variables of an optimizer are a method in some
    versions of Keras and an attribute in others, and scripts use both forms."""

    def __call__(self):
        return self


def is_keras3(keras):
    """Whether the module ``keras`` (the package keras, or tf.keras) is Keras 3."""
    return hasattr(keras, 'ops')


def version(keras):
    """Returns the version as text; '2' for tf.keras of TensorFlow 2.15, which does not tell its
    version."""
    return getattr(keras, '__version__', '2')


def engine(keras):
    """Returns the engine: the module with the operations for the backend of this Keras.
    ImportError for a backend that hvd does not support."""
    backend = keras.backend.backend() if is_keras3(keras) else 'tensorflow'
    if backend not in _ENGINES:
        raise ImportError(
            f'Keras {version(keras)} has the backend {backend!r} here, and hvd supports '
            f'{" and ".join(_ENGINES)}: set the environment variable KERAS_BACKEND to one of '
            'them, or the "backend" of ~/.keras/keras.json, before Keras is imported')
    return importlib.import_module(_ENGINES[backend])


def variables(keras, given):
    """Converts an argument that is None, one variable, or several variables to a list. ValueError
    for anything else."""
    kind = keras.Variable if is_keras3(keras) else importlib.import_module('tensorflow').Variable
    found = [] if given is None else [given] if isinstance(given, kind) else list(given)
    if not all(isinstance(each, kind) for each in found):
        raise ValueError('All local variables must be of '
                         f'{"keras" if is_keras3(keras) else "tf"}.Variable type, not {given!r}')
    return found


def classes(keras, module, bases):
    """Makes the public classes of a package for one Keras. ``bases``: {name of the class: its
    bases}. A class has the docstring of its first base and the attribute ``keras``."""
    return [type(name, kinds, {'__module__': module, '__doc__': kinds[0].__doc__, 'keras': keras})
            for name, kinds in bases.items()]


def create_distributed_optimizer(keras, optimizer, name, device_dense, device_sparse, compression,
                                 sparse_as_dense, gradient_predivide_factor, op,
                                 backward_passes_per_step=1, average_aggregated_gradients=False,
                                 groups=None, process_set=global_process_set,
                                 scale_local_gradients=True):
    """Makes a DistributedOptimizer for the module ``keras``; some projects call this function of
    Horovod. For the arguments see horovod._keras.optimizer.distribute."""
    from horovod._keras.optimizer import distribute  # here: that module imports this one
    return distribute(keras, optimizer, name, device_dense, device_sparse, compression,
                      sparse_as_dense, gradient_predivide_factor, op, backward_passes_per_step,
                      average_aggregated_gradients, groups=groups, process_set=process_set,
                      scale_local_gradients=scale_local_gradients)
