# SPDX-License-Identifier: Apache-2.0
"""The operations that hvd adds to TensorFlow (contrib/python/native/tensorflow), loaded on import."""

import ctypes
import logging
import os

import tensorflow as tf

from horovod.common import library
from horovod.tensorflow import fallback

_log = logging.getLogger('horovod')

CHOICE = 'HVD_TENSORFLOW_OPS'
_FILE = 'hvd_tensorflow.so'


def _places():
    """Beside this module in an install; in a build, beside the folder of libhvd.so."""
    yield os.path.join(os.path.dirname(os.path.realpath(__file__)), _FILE)
    built = os.path.dirname(os.path.dirname(os.path.realpath(library.PATH)))
    yield os.path.join(built, 'contrib', 'python', 'native', 'tensorflow', _FILE)


def _wants_python():
    """Whether the user asked for the operations in Python."""
    chosen = os.environ.get(CHOICE, '')
    if chosen not in ('', 'auto', 'python'):
        raise ValueError(f'{CHOICE}={chosen}: use python, or auto for those of {_FILE} where '
                         'TensorFlow can load it')
    return chosen == 'python'


def _keeps_threads(place):
    """Whether the nodes of the library keep a thread; OSError where it does not tell."""
    try:
        ask = ctypes.CDLL(place).hvd_tensorflow_nodes_wait
    except AttributeError:
        raise OSError(f'{place} is of another version of hvd: it lacks '
                      'hvd_tensorflow_nodes_wait') from None
    ask.restype = ctypes.c_bool
    return ask()


def _load():
    """The operations, and whether their nodes keep a thread of the graph until all ranks have come;
    where they cannot be had or are not wanted, those in Python."""
    places = list(_places())
    found = [place for place in places if os.path.exists(place)]
    try:
        if _wants_python():
            raise OSError(f'{CHOICE}=python')
        if not found:
            raise OSError(f'there is no {_FILE} at {" or ".join(places)}')
        loaded = tf.load_op_library(found[0])
        if not hasattr(loaded, 'horovod_allreduce'):
            raise OSError(f'{found[0]} does not find all that it needs')
        return loaded, _keeps_threads(found[0])
    except (OSError, tf.errors.OpError) as cause:
        _log.info('collectives run as Python code in TensorFlow %s: %s', tf.__version__, cause)
        return fallback.Operations(), True


ops, nodes_wait = _load()


def gradient_of(kind):
    """A decorator: the function is the gradient of this kind of operation."""
    def register(function):
        fallback.GRADIENTS[kind] = function
        return tf.RegisterGradient(kind)(function)

    return register
