# SPDX-License-Identifier: Apache-2.0
"""Arguments that all collective operations of TensorFlow have in common.

In a graph, the ranks match tensors by the names of the nodes. In eager mode they match them by the
name that the caller gives. Without one, the kind of the operation is the name, which suffices
because each operation ends before the next one begins. In eager mode the calling thread itself
waits, which saves waking another thread.
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
    """Like tf.device, but without its cost if no device is requested, which is the usual case."""
    return _ANYWHERE if device == '' else tf.device(device)


def set_number(process_set):
    """Returns the set's number in libhvd. ValueError if it has none. If this rank is not a member,
    the operation fails when it runs, as in Horovod."""
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
    """Whether this rank shares data with others, or may do so later in an elastic job."""
    return process_set.included() and (process_set.size() > 1
                                       or os.environ.get('HOROVOD_ELASTIC') == '1')


def size_of(process_set):
    """Returns the number of ranks, in double precision. A graph evaluates it each time it runs,
    because the number may change in an elastic job."""
    if tf.executing_eagerly():
        return float(process_set.size())
    return tf.cast(ops.horovod_size(process_set_id=set_number(process_set)), tf.float64)


def normalized(name):
    """Returns the name with an underscore for each character except letters, digits and
    underscores."""
    return re.sub('[^A-Za-z0-9_]', '_', name)


def _has_name(tensor):
    """Whether the tensor has a name that is the same on all ranks. Eager tensors that a graph uses
    have numbers as names, which may differ between ranks."""
    return not hasattr(tensor, 'numpy') and not tensor.name[0].isdigit()


def names_of(tensors):
    """Returns the names of the first and the last of these tensors of a graph, as part of a name
    that is the same on all ranks."""
    ends = tensors if len(tensors) == 1 else (tensors[0], tensors[-1])
    return '_'.join(normalized(each.name) for each in ends if _has_name(each))


def describe(kind, tensors, name, ignore_name_scope, set_id):
    """Returns the arguments that all collective operations have in common. ``kind``: the operation,
    such as HorovodAllreduce."""
    check_name(name)
    if tf.executing_eagerly():
        return {'tensor_name': name or kind, 'process_set_id': set_id, 'blocks': True}
    if name is None:
        names = names_of(tensors)
        name = f'{kind}_{names}' if names else kind
    return {'name': name, 'process_set_id': set_id, 'ignore_name_scope': ignore_name_scope}


def independent(outputs):
    """Lets tf.function start the operation with these outputs as soon as its inputs are ready,
    rather than after the previous stateful operation of the program. Nodes that occupy a thread
    while they wait keep the program's order, so that all ranks wait in the same order. Returns the
    outputs."""
    if not nodes_wait and not tf.executing_eagerly():
        graph = tf.compat.v1.get_default_graph()
        manager = getattr(graph, 'experimental_acd_manager', None)
        first = outputs[0] if isinstance(outputs, (list, tuple)) else outputs
        if manager is not None:
            manager.run_independently(first.op)
    return outputs


def in_turn(items, function):
    """Calls the function for each item and yields its results: tensors, tf.IndexedSlices or lists
    of them. In a graph whose nodes occupy a thread while they wait, the collectives of an item
    start after those of the previous item. So all ranks wait in the same order, even if a session
    has few threads."""
    before = []
    for item in items:
        with tf.control_dependencies(before):
            result = function(item)
        yield result
        if nodes_wait and not tf.executing_eagerly():
            before = tf.nest.flatten(result, expand_composites=True)


def tensors_of(values):
    """Converts the values of a group to tensors. ValueError if there are none."""
    if len(values) == 0:
        raise ValueError('a grouped collective needs at least one tensor')
    return [value if isinstance(value, tf.Tensor) else tf.convert_to_tensor(value)
            for value in values]


def factors(scale):
    """Returns the attributes of an operation for its prescale and postscale factors."""
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
