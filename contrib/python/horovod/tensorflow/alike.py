# SPDX-License-Identifier: Apache-2.0
"""Warns if the ranks train different variables, because the script does not broadcast those of one
rank. Works in eager programs and in tf.function; graphs of TensorFlow 1 and elastic jobs are not
checked.

Two operations do this (contrib/python/native/tensorflow/start.c). The first counts the reductions
of the same gradients, which all ranks run equally often. In one of them, the second compares sums
of some variables without waiting for other ranks.
"""

import ctypes
import heapq

import tensorflow as tf

from horovod.common import alike, requests
from horovod.common.elastic import is_elastic
from horovod.tensorflow.collectives.nodes import names_of, set_number
from horovod.tensorflow.native import library, ops

_MOST = 8  # the number of variables that are compared

# {(name, number of the process set): the line of the script that reduces these gradients}. The
# operations find a difference in threads of TensorFlow, whose stacks do not lead to the script.
_lines = {}


@ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_int)
def _warn(name, set_id):
    alike.report_difference(
        'hvd.broadcast_variables(model.variables, root_rank=0), or fit() with '
        'BroadcastGlobalVariablesCallback(0) of hvd.callbacks,',
        _lines.get((name.decode(), set_id)) or alike.line_of_script(()))


def _forget(set_id):
    library.hvd_tensorflow_start_forget(-1 if set_id is None else set_id)


library.hvd_tensorflow_start_warn(_warn)
requests.when_restarted(_forget)


def _sums(variables):
    """Returns the input of HorovodStartCompare, from the last row of each variable: the sum of a
    whole matrix of random values would be relatively closer to zero."""
    total = magnitude = tf.constant(0, tf.float64)
    for variable in variables:
        row = variable.read_value()
        row = tf.cast(row[(-1,) * (row.shape.rank - 1)] if row.shape.rank else row, tf.float64)
        total += tf.reduce_sum(row)
        magnitude += tf.reduce_sum(tf.abs(row))
    return tf.stack([tf.constant(1, tf.float64), total, total * total, magnitude])


def _chosen(variables):
    """Returns the largest variables of TensorFlow among these, and of those in variables of Keras
    3: the small ones often begin with the same value on all ranks."""
    found = [getattr(each, 'value', None) if isinstance(getattr(type(each), 'value', None), property)
             else each for each in variables]
    found = [each for each in found if isinstance(each, tf.Variable) and each.dtype.is_floating
             and each.shape.is_fully_defined() and each.shape.num_elements() > 0]
    return heapq.nlargest(_MOST, found, key=lambda each: each.shape.num_elements())


def _traced(tensor):
    """Yields (file, line) of each call that has led to a tensor of a graph, from the innermost
    outwards. TensorFlow gives the lines of the script instead of those of AutoGraph's copy."""
    for frame in reversed(list(tensor.op.traceback or ())):
        yield frame.filename, frame.lineno


@tf.autograph.experimental.do_not_convert
def check(variables, gradients, reduced, name, process_set):
    """Counts one reduction of these gradients of these variables; call it before the variables
    change. ``reduced``: one of the results. ``name``: what the ranks call the gradients, or None."""
    if (not tf.compat.v1.executing_eagerly_outside_functions() or is_elastic()
            or tf.distribute.has_strategy()):
        return
    chosen = _chosen(variables)
    if not chosen:
        return
    eager = tf.executing_eagerly()
    # A job compares gradients of the same name and variables of the same sizes once.
    sizes = sum(each.shape.num_elements() for each in chosen)
    name = name or ('eager' if eager else names_of(gradients))
    label = {'tensor_name': f'{name}.{sizes}', 'process_set_id': set_number(process_set)}

    def compare():
        sums = _sums(chosen)
        with tf.device('CPU:0'):
            return ops.horovod_start_compare(sums, **label)

    with tf.control_dependencies([reduced]), tf.device('CPU:0'):
        step = ops.horovod_start_step(**label)
        is_due = tf.cast(step, tf.bool)
    _lines[tuple(label.values())] = alike.line_of_script(alike.calls() if eager else _traced(step))
    if not eager:
        tf.cond(is_due, compare, lambda: tf.constant(0))
    elif is_due:
        compare()
