# SPDX-License-Identifier: Apache-2.0
"""allgather: concatenates the tensors of all ranks along dimension 0."""

import tensorflow as tf

from horovod.common.basics import Average
from horovod.common.process_sets import global_process_set
from horovod.tensorflow.collectives.nodes import gather, in_turn, reduce, set_number, tensors_of
from horovod.tensorflow.native import ops


def allgather(tensor, name=None, ignore_name_scope=False, process_set=global_process_set):
    """Returns the tensors of all ranks, concatenated along dimension 0 in rank order.

    tensor: has at least one dimension. Ranks may differ in dimension 0, but not in the other
        dimensions or the dtype. Differentiable.
    name, ignore_name_scope: as for allreduce.
    process_set: the ranks that take part; all of them must call this.
    """
    return gather([tf.convert_to_tensor(tensor)], name, ignore_name_scope,
                   set_number(process_set))[0]


def grouped_allgather(tensors, name=None, ignore_name_scope=False,
                      process_set=global_process_set):
    """Like allgather for a list of tensors, gathered as one; returns a list. Differentiable."""
    return gather(tensors_of(tensors), name, ignore_name_scope, set_number(process_set))


@tf.RegisterGradient('HorovodAllgather')
def _gradient(op, *gradients):
    """Averages the gradients over the ranks; returns this rank's rows."""
    set_id = op.get_attr('process_set_id')
    rows = tf.stack([tf.shape(tensor, tf.int64)[:1] for tensor in op.inputs], axis=1)
    averaged, (counts,) = in_turn(
        (lambda: reduce(list(gradients), Average, (1.0, 1.0), None, False, set_id),
         lambda: gather([rows], None, False, set_id)), lambda collective: collective())
    index = ops.horovod_process_set_rank(process_set_id=set_id)
    starts = tf.reduce_sum(counts[:index], axis=0)
    return [each[starts[i]:starts[i] + rows[0, i]] for i, each in enumerate(averaged)]
