# SPDX-License-Identifier: Apache-2.0
"""The operations that hvd adds to TensorFlow (contrib/python/native/tensorflow), loaded on
import."""

import ctypes

import tensorflow as tf

from horovod.common.library import companion


def _functions(place):
    """Returns the library, for calls of its functions. OSError if it lacks one."""
    library = ctypes.CDLL(place)
    for name, result in (('nodes_wait', ctypes.c_bool), ('start_warn', None),
                         ('start_forget', None), ('start_abstain', None)):
        try:
            getattr(library, f'hvd_tensorflow_{name}').restype = result
        except AttributeError:
            raise OSError(f'it has no function hvd_tensorflow_{name}') from None
    return library


def _load():
    """Loads the library. Returns its operations and its functions."""
    place = companion(__file__, 'tensorflow', 'hvd_tensorflow.so')
    try:
        loaded = tf.load_op_library(place)
        if not hasattr(loaded, 'horovod_allreduce'):
            raise OSError('it does not find the C interface of TensorFlow that it needs')
        return loaded, _functions(place)
    except (OSError, tf.errors.OpError) as cause:
        raise ImportError(f'TensorFlow {tf.__version__} cannot load {place}: {cause}. hvd needs '
                          'TensorFlow 2.12 or newer, and this file from the same "meson install" '
                          'as its other files') from cause


ops, library = _load()

# Whether nodes occupy a thread of the graph until all ranks have submitted the tensor. They do so
# before TensorFlow 2.13.
nodes_wait = library.hvd_tensorflow_nodes_wait()
