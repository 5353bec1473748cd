# SPDX-License-Identifier: Apache-2.0
"""The common arguments of TensorFlow's collective operations: names, and how they wait.

In a graph, the ranks match tensors by the names of the nodes; in eager mode, where an operation
ends before the next begins, by the kind of the operation or the name that the caller gave. There
the calling thread waits itself, which saves waking up another.
"""

import contextlib
import os
import re

import tensorflow as tf

from horovod.common.arguments import check_name, check_scale, check_set
from horovod.common.library import lib
from horovod.common.process_sets import UNKNOWN_SET, global_process_set
from horovod.tensorflow.native import nodes_wait, ops

_ANYWHERE = contextlib.nullcontext()


def placed_on(device):
    """As tf.device, but costs nothing in eager mode if no device is requested, which is the usual
    case."""
    return _ANYWHERE if device == '' else tf.device(device)


def set_number(process_set):
    """The set's number in libhvd; ValueError if it has none. If this rank is not a member, the
    operation reports that, as in Horovod."""
    if process_set is global_process_set:
        return 0
    check_set(process_set)
    number = process_set.process_set_id
    if number is None or lib.hvd_set_size(number) < 0:
        raise ValueError(UNKNOWN_SET)
    if not tf.executing_eagerly():
        process_set.note_graph()
    return number


def may_have_others(process_set):
    """Whether this rank shares data with others, or may do so later, in an elastic job."""
    return process_set.included() and (process_set.size() > 1
                                       or os.environ.get('HOROVOD_ELASTIC') == '1')


def size_of(process_set):
    """The number of ranks in double precision. A graph looks it up each time, since it may outlive
    ranks of an elastic job."""
    if tf.executing_eagerly():
        return float(process_set.size())
    return tf.cast(ops.horovod_size(process_set_id=set_number(process_set)), tf.float64)


def normalized(name):
    """The name with all characters except letters, digits and underscores replaced."""
    return re.sub('[^A-Za-z0-9_]', '_', name)


def _has_name(tensor):
    """Whether the tensor's name is the same on all ranks. In a graph, names of eager tensors are
    numbers, which may differ between ranks."""
    return not hasattr(tensor, 'numpy') and not tensor.name[0].isdigit()


def describe(kind, tensors, name, ignore_name_scope, set_id):
    """The arguments that all collectives have in common. ``kind`` is as in HorovodAllreduce."""
    check_name(name)
    if tf.executing_eagerly():
        return {'tensor_name': name or kind, 'process_set_id': set_id, 'blocks': True}
    if name is None:
        ends = tensors if len(tensors) == 1 else (tensors[0], tensors[-1])
        name = '_'.join([kind] + [normalized(each.name) for each in ends if _has_name(each)])
    return {'name': name, 'process_set_id': set_id, 'ignore_name_scope': ignore_name_scope}


def independent(outputs):
    """Lets tf.function start the operation with these outputs as soon as its inputs are ready;
    otherwise it would wait for the previous stateful operation of the program. Nodes that occupy a
    thread keep that order, so that all ranks wait in the same order. Returns the outputs."""
    if not nodes_wait and not tf.executing_eagerly():
        graph = tf.compat.v1.get_default_graph()
        manager = getattr(graph, 'experimental_acd_manager', None)
        first = outputs[0] if isinstance(outputs, (list, tuple)) else outputs
        if manager is not None:
            manager.run_independently(first.op)
    return outputs


def in_turn(items, function):
    """Yields the function's result for each item: tensors, tf.IndexedSlices or lists of them. In a
    graph whose nodes occupy a thread, the collectives of an item start after those of the previous
    one. So all ranks wait in the same order, even if a session has few threads."""
    before = []
    for item in items:
        with tf.control_dependencies(before):
            result = function(item)
        yield result
        if nodes_wait and not tf.executing_eagerly():
            before = tf.nest.flatten(result, expand_composites=True)


def tensors_of(values):
    """The values of a group as tensors."""
    if len(values) == 0:
        raise ValueError('a grouped collective needs at least one tensor')
    return [value if isinstance(value, tf.Tensor) else tf.convert_to_tensor(value)
            for value in values]


def factors(scale):
    """The attributes of an operation that multiplies before and after its reduction."""
    prescale, postscale = check_scale(scale)
    return {'prescale_factor': repr(prescale), 'postscale_factor': repr(postscale)}


def reduce(tensors, op, scale, name, ignore_name_scope, set_id):
    """Reduces dense tensors as one group; returns the list of results."""
    kind = 'HorovodAllreduce' if len(tensors) == 1 else 'HorovodGroupedAllreduce'
    return independent(ops.horovod_allreduce(
        tensors, reduce_op=op, **factors(scale),
        **describe(kind, tensors, name, ignore_name_scope, set_id)))


def gather(tensors, name, ignore_name_scope, set_id):
    """Gathers tensors as one group; returns the list of results."""
    kind = 'HorovodAllgather' if len(tensors) == 1 else 'HorovodGroupedAllgather'
    return independent(ops.horovod_allgather(
        tensors, **describe(kind, tensors, name, ignore_name_scope, set_id)))
