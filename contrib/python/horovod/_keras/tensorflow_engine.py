# SPDX-License-Identifier: Apache-2.0
"""The operations with which the Keras front ends work on TensorFlow."""

import logging

import numpy
import tensorflow as tf

import horovod.tensorflow as hvd
from horovod.common.basics import Average
from horovod.tensorflow import Compression, aggregation, elastic, gradients, native

init_scope = tf.init_scope
failures = elastic.failures
broadcast_follows = native.library.hvd_tensorflow_start_abstain


def prepare(model):
    """Prepares the model for training: turns XLA off, which cannot compile operations that wait for
    other ranks."""
    if getattr(model, 'jit_compile', False):
        logging.getLogger('horovod').info('the training step is not compiled by XLA: it '
                                          'communicates with other ranks')
        model.jit_compile = False


def Reduction(name, *arguments):
    """Returns a function that reduces gradients over all ranks. The arguments are those of
    DistributedOptimizer."""
    return gradients.Reduction(*arguments)


class Aggregation(aggregation.Aggregation):
    """Sums of gradients on this rank, before the ranks reduce them. Graphs of TensorFlow 1 run in
    Keras's session."""

    def apply_on_last(self, apply, otherwise):
        """Calls ``apply`` in the last backward pass of a step, and ``otherwise`` in the other
        passes."""
        return super().apply_on_last(lambda: _operation(apply()), lambda: _operation(otherwise()))

    def forget(self):
        _evaluated(super().forget())

    def _make_variables(self, gradients):
        are_new = self.counter is None
        super()._make_variables(gradients)
        if are_new and _is_graph_of_1():
            _evaluated([each.initializer for each in (self.counter, *self._sums)])


def _is_graph_of_1():
    return not tf.compat.v1.executing_eagerly_outside_functions()


def _operation(result):
    """Returns the operation of a result in a graph, and None in eager mode."""
    return getattr(result, 'op', result) if not tf.executing_eagerly() else None


def _evaluated(result):
    """Returns the value of an operation. In a graph of TensorFlow 1 it runs the operation in
    Keras's session."""
    return tf.compat.v1.keras.backend.get_session().run(result) if _is_graph_of_1() else result


def allreduce(value, name=None, average=None, prescale_factor=1.0, postscale_factor=1.0, op=None,
              compression=Compression.none):
    """Returns the reduction of an array, a number or a tensor over all ranks. The default op is
    Average. This function, allgather, broadcast and reducescatter return a tensor or, in a graph of
    TensorFlow 1, a NumPy array."""
    return _evaluated(hvd.allreduce(
        tf.convert_to_tensor(value), average=average, name=name, op=op, compression=compression,
        prescale_factor=prescale_factor, postscale_factor=postscale_factor))


def allgather(value, name=None):
    """Returns the arrays of all ranks, concatenated along dimension 0 in rank order."""
    return _evaluated(hvd.allgather(tf.convert_to_tensor(value), name=name))


def broadcast(value, root_rank, name=None):
    """Returns the array of rank root_rank. All ranks pass arrays of the same shape and dtype."""
    return _evaluated(hvd.broadcast(tf.convert_to_tensor(value), root_rank, name=name))


def reducescatter(value, name=None, op=Average):
    """Returns this rank's part, along dimension 0, of the reduction over all ranks. op: Average or
    Sum."""
    return _evaluated(hvd.reducescatter(tf.convert_to_tensor(value), op=op, name=name))


def broadcast_global_variables(root_rank):
    """Copies the variables of a graph of TensorFlow 1 from rank root_rank to all ranks.
    RuntimeError in eager mode."""
    return _evaluated(hvd.broadcast_global_variables(root_rank))


def average_number(value, name):
    """Returns the mean of a number or an array over the ranks, as a float64 array."""
    return numpy.asarray(allreduce(numpy.asarray(value, dtype='float64'), name=name))


def broadcast_variables(variables, root_rank):
    """Copies the values of variables of TensorFlow or Keras from rank root_rank to all ranks."""
    _evaluated(hvd.broadcast_variables(_of_tensorflow(variables), root_rank))


def _of_tensorflow(variables):
    return [each if isinstance(each, tf.Variable) else each.value for each in variables]


def Values(variables):
    """Returns an object that saves and restores the values of variables of TensorFlow or Keras; see
    horovod.tensorflow.elastic. ``variables``: a function that returns the list."""
    def found():
        return _of_tensorflow(variables())

    if _is_graph_of_1():
        return elastic.GraphValues(found, tf.compat.v1.keras.backend.get_session)
    return elastic.Values(found)
