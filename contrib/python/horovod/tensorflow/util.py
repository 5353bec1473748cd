# SPDX-License-Identifier: Apache-2.0
"""Helpers of Horovod that scripts, tests and other packages import from here. hvd itself does not
use them."""

import functools

import tensorflow as tf


def _executing_eagerly():
    return tf.executing_eagerly()


def _make_subgraph(f):
    return tf.function(f)


def _cache(f):
    """The function with a memory of its results, one for each mode of TensorFlow and arguments."""
    results = {}

    @functools.wraps(f)
    def wrapper(*args):
        key = args, tf.executing_eagerly()
        if key not in results:
            results[key] = f(*args)
        return results[key]

    return wrapper


def vars_to_refs(vars):
    """Variables as what a dictionary may have for keys; lists become tuples."""
    return tuple(map(vars_to_refs, vars)) if isinstance(vars, list) else vars.ref()


def refs_to_vars(refs):
    """The way back; tuples become lists."""
    return list(map(refs_to_vars, refs)) if isinstance(refs, tuple) else refs.deref()
