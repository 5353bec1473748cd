# SPDX-License-Identifier: Apache-2.0
"""Helpers of Horovod that scripts and other packages import. hvd itself does not use them."""

import functools

import tensorflow as tf


def _executing_eagerly():
    return tf.executing_eagerly()


def _make_subgraph(f):
    return tf.function(f)


def _cache(f):
    """Decorator: keeps the results of the function for each combination of arguments, separately
    for eager mode and graphs."""
    results = {}

    @functools.wraps(f)
    def wrapper(*args):
        key = args, tf.executing_eagerly()
        if key not in results:
            results[key] = f(*args)
        return results[key]

    return wrapper


def vars_to_refs(vars):
    """Converts variables to references, which can be keys of a dictionary; lists become tuples."""
    return tuple(map(vars_to_refs, vars)) if isinstance(vars, list) else vars.ref()


def refs_to_vars(refs):
    """Converts the result of vars_to_refs back to variables; tuples become lists."""
    return list(map(refs_to_vars, refs)) if isinstance(refs, tuple) else refs.deref()
