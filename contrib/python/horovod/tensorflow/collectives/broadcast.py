# SPDX-License-Identifier: Apache-2.0
"""broadcast: copies the tensor of one rank to all ranks."""

import tensorflow as tf

from horovod.common.arguments import (check_iterable, check_name, check_rank,
                                      wrong_type)
from horovod.common.basics import Average
from horovod.common.process_sets import global_process_set
from horovod.tensorflow.collectives.nodes import (describe, in_turn, independent, reduce,
                                                  set_number)
from horovod.tensorflow.native import ops


def broadcast(tensor, root_rank, name=None, ignore_name_scope=False,
              process_set=global_process_set):
    """Returns the tensor of rank root_rank, as a new tensor. Differentiable.

    tensor: the same shape and dtype on all ranks.
    root_rank: a rank of the job, also if process_set has only some of its ranks.
    name, ignore_name_scope: as for allreduce.
    process_set: the ranks that take part; all of them must call this.
    """
    tensor = tf.convert_to_tensor(tensor)
    return independent(ops.horovod_broadcast(
        tensor, root_rank=check_rank('root_rank', root_rank),
        **describe('HorovodBroadcast', [tensor], name, ignore_name_scope,
                   set_number(process_set))))


@tf.RegisterGradient('HorovodBroadcast')
def _gradient(op, gradient):
    """Returns the average of the gradients of all ranks on the root, and zeros on other ranks."""
    averaged, = reduce([gradient], Average, (1.0, 1.0), None, False,
                       op.get_attr('process_set_id'))
    is_root = tf.equal(ops.horovod_rank(), op.get_attr('root_rank'))
    return tf.where(is_root, averaged, tf.zeros_like(averaged))


def broadcast_(variables, root_rank, name=None, process_set=global_process_set):
    """Assigns the values of rank root_rank to a list of variables of TensorFlow 1, TensorFlow 2 or
    Keras. Returns the assignments, which a graph must run."""
    check_name(name)
    check_iterable('variables', variables, 'a list of tf.Variable')
    variables = list(variables)
    for index, each in enumerate(variables):
        if not hasattr(each, 'dtype'):
            raise wrong_type(f'variables[{index}]', each, 'a tf.Variable')
    values = in_turn(range(len(variables)), lambda index: broadcast(
        variables[index], root_rank, None if name is None else f'{name}.{index}',
        process_set=process_set))
    return [_assign(*pair) for pair in zip(variables, values)]


def _assign(variable, value):
    if hasattr(variable, 'assign'):
        return variable.assign(value)
    return tf.compat.v1.assign(variable, value)
