# SPDX-License-Identifier: Apache-2.0
"""The operations that hvd adds to TensorFlow (contrib/python/native/tensorflow), loaded on
import."""

import ctypes

import tensorflow as tf

from horovod.common.library import companion


def _keeps_threads(place):
    """Whether the nodes of the library occupy a thread while they wait. OSError if the library
    lacks the function that tells."""
    try:
        ask = ctypes.CDLL(place).hvd_tensorflow_nodes_wait
    except AttributeError:
        raise OSError('it has no function hvd_tensorflow_nodes_wait') from None
    ask.restype = ctypes.c_bool
    return ask()


def _load():
    """Loads the library. Returns its operations, and whether their nodes occupy a thread of the
    graph until all ranks have submitted the tensor. They do so before TensorFlow 2.13."""
    place = companion(__file__, 'tensorflow', 'hvd_tensorflow.so')
    try:
        loaded = tf.load_op_library(place)
        if not hasattr(loaded, 'horovod_allreduce'):
            raise OSError('it does not find the C interface of TensorFlow that it needs')
        return loaded, _keeps_threads(place)
    except (OSError, tf.errors.OpError) as cause:
        raise ImportError(f'TensorFlow {tf.__version__} cannot load {place}: {cause}. hvd needs '
                          'TensorFlow 2.12 or newer, and this file from the same "meson install" '
                          'as its other files') from cause


ops, nodes_wait = _load()
