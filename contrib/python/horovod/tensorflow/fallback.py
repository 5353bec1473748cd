# SPDX-License-Identifier: Apache-2.0
"""The operations of contrib/python/native/tensorflow in Python, for a TensorFlow that cannot load them: on
NumPy arrays, in nodes that run Python code.

Such a node keeps one of the graph's threads until all ranks have come, so that a graph whose
collectives may run in any order needs as many inter-op threads as it has collectives. What Python
raises in a graph, TensorFlow tells as InvalidArgumentError or as UnknownError, by its class; eager
mode raises what the operations do.
"""

import ctypes

import numpy as np
import tensorflow as tf

from horovod.common import requests
from horovod.common.basics import basics
from horovod.common.exceptions import HorovodInternalError, RanksDisagreeError
from horovod.common.library import DEVICE_CPU, DTYPES, lib

GRADIENTS = {}  # functions of an operation and its outputs' gradients, by kind of operation


class _Operation:
    """What a gradient function wants to know of the operation."""

    def __init__(self, inputs, outputs, attributes):
        self.inputs, self.outputs, self._attributes = inputs, outputs, attributes

    def get_attr(self, name):
        return self._attributes[name]


class _InvalidArgument(tf.errors.InvalidArgumentError, ValueError):
    """A ValueError, since by that a graph sees that an argument is wrong."""


def _describe(name, source, target=None):
    return (name, source.ctypes.data, None if target is None else target.ctypes.data,
            source.shape, DTYPES[source.dtype.name], DEVICE_CPU)


def _wait(request):
    return requests.synchronize(requests.add(request))


def _take(request, index, like):
    """A copy of what libhvd allocated, as an array."""
    address, rows = request.take(index)
    result = np.empty((rows, *like.shape[1:]), like.dtype)
    if address:
        ctypes.memmove(result.ctypes.data, address, result.nbytes)
        lib.hvd_free(address)
    return result


def _part(shape, set_id):
    """The shape of this rank's part of a reducescatter; libhvd refuses a scalar on all ranks."""
    if not shape:
        return ()
    size, rank = lib.hvd_set_size(set_id), lib.hvd_set_rank(set_id)
    return (shape[0] // size + (rank < shape[0] % size), *shape[1:])


class Operations:
    """Stands in for the module that tf.load_op_library returns."""

    def __getattr__(self, name):
        raise AttributeError(f'hvd has no operation {name} without its library')

    def horovod_allreduce(self, tensors, **attributes):
        def run(names, arrays):
            outputs = [np.empty_like(each) for each in arrays]
            return _wait(requests.allreduce(
                [_describe(*each) for each in zip(names, arrays, outputs)],
                attributes['reduce_op'], _scale(attributes), attributes['process_set_id'],
                (arrays, outputs), lambda request: outputs))

        return _node('HorovodAllreduce', run, tensors, attributes)

    def horovod_reducescatter(self, tensors, **attributes):
        def run(names, arrays):
            set_id = attributes['process_set_id']
            outputs = [np.empty(_part(each.shape, set_id), each.dtype) for each in arrays]
            return _wait(requests.reducescatter(
                [_describe(*each) for each in zip(names, arrays, outputs)],
                attributes['reduce_op'], _scale(attributes), set_id, (arrays, outputs),
                lambda request: outputs))

        return _node('HorovodReducescatter', run, tensors, attributes)

    def horovod_allgather(self, tensors, **attributes):
        def run(names, arrays):
            return _wait(requests.allgather(
                [_describe(*each) for each in zip(names, arrays)],
                attributes['process_set_id'], arrays,
                lambda request: [_take(request, *each) for each in enumerate(arrays)]))

        return _node('HorovodAllgather', run, tensors, attributes)

    def horovod_broadcast(self, tensor, **attributes):
        def run(names, arrays):
            output = np.empty_like(arrays[0])
            return _wait(requests.broadcast(
                _describe(names[0], arrays[0], output), attributes['root_rank'],
                attributes['process_set_id'], (arrays, output), lambda request: [output]))

        return _node('HorovodBroadcast', run, [tensor], attributes)[0]

    def horovod_alltoall(self, tensor, splits, **attributes):
        def run(names, arrays):
            source, counts = arrays
            if counts.ndim != 1:
                raise ValueError('alltoall expects a 1D splits tensor')
            size = lib.hvd_set_size(attributes['process_set_id'])
            return _wait(requests.alltoall(
                _describe(names[0], source), counts.tolist() or None,
                attributes['process_set_id'], source,
                lambda request: [_take(request, 0, source),
                                 np.array(request.received_splits(size), np.int32)]))

        return _node('HorovodAlltoall', run, [tensor, splits], attributes)

    def horovod_join(self, **attributes):
        return _number(lambda: _told('HorovodJoin', lambda: _wait(requests.join())))

    def horovod_rank(self, name=None):
        return _number(basics.rank)

    def horovod_local_rank(self, name=None):
        return _number(basics.local_rank)

    def horovod_local_size(self, name=None):
        return _number(basics.local_size)

    def horovod_size(self, process_set_id=0, name=None):
        return _number(lambda: lib.hvd_set_size(process_set_id))

    def horovod_process_set_rank(self, process_set_id=0, name=None):
        return _number(lambda: lib.hvd_set_rank(process_set_id))

    def horovod_process_set_included(self, process_set_id=0, name=None):
        return _number(lambda: int(lib.hvd_set_rank(process_set_id) >= 0))


def _scale(attributes):
    return tuple(float(attributes[f'{when}scale_factor']) for when in ('pre', 'post'))


def _told(kind, function):
    """What the function returns. Its failures are raised as TensorFlow's, of the classes and with
    the texts of the operations in C (fail_context in contrib/python/native/tensorflow/call.c)."""
    try:
        return function()
    except (ValueError, NotImplementedError) as error:
        raise _InvalidArgument(None, None, str(error)) from None
    except RanksDisagreeError as error:
        raise tf.errors.FailedPreconditionError(None, None, str(error)) from None
    except HorovodInternalError as error:  # elastic training begins anew by this text
        raise tf.errors.UnknownError(None, None, f'{kind} failed: {error}') from None


def _number(read):
    number = tf.numpy_function(lambda: np.int32(read()), [], tf.int32)
    number.set_shape(())
    return number


def _names(kind, count, attributes):
    name = attributes.get('tensor_name')
    if name is None:
        name = tf.compat.v1.get_default_graph().unique_name(attributes.get('name') or kind)
        name = name.split('/')[-1] if attributes.get('ignore_name_scope') else name
    return [name] if count == 1 else [f'{name}_{index}of{count}'
                                      for index in range(1, count + 1)]


def _call(compute, tensors, types):
    """The outputs of a function of arrays. Not by tf.numpy_function in eager mode, where that does
    not take scalars of bfloat16."""
    if tf.executing_eagerly():
        outputs = compute(*[np.asarray(each.numpy()) for each in tensors])
        return [tf.convert_to_tensor(*each) for each in zip(outputs, types)]
    return tf.nest.flatten(tf.numpy_function(compute, tensors, types))


def _node(kind, run, inputs, attributes):
    """The list of outputs of ``run``, a function of the names and the arrays of the inputs."""
    names = _names(kind, len(inputs), attributes)
    types = [each.dtype for each in inputs]
    for wrong in {each.name for each in types} - set(DTYPES):
        raise TypeError(f'{kind} does not take tensors of {wrong}')

    @tf.autograph.experimental.do_not_convert
    def compute(*arrays):
        return _told(kind, lambda: run(names, [np.ascontiguousarray(each).reshape(each.shape)
                                               for each in arrays]))

    @tf.custom_gradient
    def differentiable(*tensors):
        outputs = _call(compute, tensors, types)

        def backward(*gradients):
            operation = _Operation(tensors, outputs, attributes)
            found = GRADIENTS[kind](operation, *gradients)
            return found if isinstance(found, (list, tuple)) else [found]

        return outputs, backward

    outputs = differentiable(*inputs)
    for output, given in zip(outputs, inputs):
        if kind in ('HorovodAllreduce', 'HorovodBroadcast'):
            output.set_shape(given.shape)
        elif given.shape.rank:
            output.set_shape([None, *given.shape[1:]])
    return list(outputs)
