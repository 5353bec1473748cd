# SPDX-License-Identifier: Apache-2.0
"""Keras's operations for TensorFlow."""

import logging

import numpy
import tensorflow as tf

import horovod.tensorflow as hvd
from horovod.common.basics import Average
from horovod.tensorflow import Compression, aggregation, elastic, gradients

init_scope = tf.init_scope
failures = elastic.failures


def prepare(model):
    """Prepares the model for training: XLA cannot compile operations that wait for other ranks."""
    if getattr(model, 'jit_compile', False):
        logging.getLogger('horovod').info('the training step is not compiled by XLA: it '
                                          'communicates with other ranks')
        model.jit_compile = False


def Reduction(name, *arguments):
    """A function that reduces gradients over all ranks. The arguments are those of
    DistributedOptimizer."""
    return gradients.Reduction(*arguments)


class Aggregation(aggregation.Aggregation):
    """Sums of gradients on this rank, before the ranks share them; in graphs of TensorFlow 1 in
    Keras's session."""

    def apply_on_last(self, apply, otherwise):
        """Calls one of the two functions: the first in the last pass of a step."""
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
    """The operation to run in a graph of TensorFlow 1, otherwise the result itself."""
    return getattr(result, 'op', result) if not tf.executing_eagerly() else None


def _evaluated(result):
    """The value of an operation, also in a graph of TensorFlow 1."""
    return tf.compat.v1.keras.backend.get_session().run(result) if _is_graph_of_1() else result


def allreduce(value, name=None, average=None, prescale_factor=1.0, postscale_factor=1.0, op=None,
              compression=Compression.none):
    """The reduction over all ranks of an array, a number or a tensor; op is Average unless
    given. Like all of these functions, it returns a tensor, or an array in graphs."""
    return _evaluated(hvd.allreduce(
        tf.convert_to_tensor(value), average=average, name=name, op=op, compression=compression,
        prescale_factor=prescale_factor, postscale_factor=postscale_factor))


def allgather(value, name=None):
    """The arrays of all ranks, one after the other along the first dimension."""
    return _evaluated(hvd.allgather(tf.convert_to_tensor(value), name=name))


def broadcast(value, root_rank, name=None):
    """The root's array. All ranks pass arrays of the same shape."""
    return _evaluated(hvd.broadcast(tf.convert_to_tensor(value), root_rank, name=name))


def reducescatter(value, name=None, op=Average):
    """This rank's part, along the first dimension, of the reduction over all ranks."""
    return _evaluated(hvd.reducescatter(tf.convert_to_tensor(value), op=op, name=name))


def broadcast_global_variables(root_rank):
    """Gives all ranks the root's variables of a graph of TensorFlow 1; RuntimeError in eager
    mode."""
    return _evaluated(hvd.broadcast_global_variables(root_rank))


def average_number(value, name):
    """The mean over the ranks of a number or an array, in double precision."""
    return numpy.asarray(allreduce(numpy.asarray(value, dtype='float64'), name=name))


def broadcast_variables(variables, root_rank):
    """Gives every rank the root's values of variables of TensorFlow or Keras."""
    _evaluated(hvd.broadcast_variables(_of_tensorflow(variables), root_rank))


def _of_tensorflow(variables):
    return [each if isinstance(each, tf.Variable) else each.value for each in variables]


def Values(variables):
    """Saves the values of variables of TensorFlow or Keras; see horovod.tensorflow.elastic."""
    def found():
        return _of_tensorflow(variables())

    if _is_graph_of_1():
        return elastic.GraphValues(found, tf.compat.v1.keras.backend.get_session)
    return elastic.Values(found)
