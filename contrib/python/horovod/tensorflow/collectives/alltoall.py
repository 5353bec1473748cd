# SPDX-License-Identifier: Apache-2.0
"""alltoall: each rank sends a part of dimension 0 to every rank."""

import tensorflow as tf

from horovod.common.process_sets import global_process_set
from horovod.tensorflow.collectives.nodes import describe, independent, set_number
from horovod.tensorflow.native import ops


def _exchange(tensor, splits, name, ignore_name_scope, set_id):
    return independent(ops.horovod_alltoall(
        tensor, splits,
        **describe('HorovodAlltoall', [tensor], name, ignore_name_scope, set_id)))


def alltoall(tensor, splits=None, name=None, ignore_name_scope=False,
             process_set=global_process_set):
    """Sends a part of dimension 0 to each rank; returns the received rows in rank order.

    tensor: has at least one dimension; all dimensions but the first are equal on all ranks.
        Differentiable.
    splits: how many rows go to each rank. None: equal parts; the number of rows must be divisible
        by the number of ranks.
    name, ignore_name_scope: as for allreduce.
    process_set: the ranks that take part; all of them must call this.

    With splits, returns (received rows, how many rows came from each rank as an int32 tensor).
    """
    tensor = tf.convert_to_tensor(tensor)
    counts = tf.convert_to_tensor([] if splits is None else splits, dtype=tf.int32)
    output, received = _exchange(tensor, counts, name, ignore_name_scope,
                                 set_number(process_set))
    return output if splits is None else (output, received)


@tf.RegisterGradient('HorovodAlltoall')
def _gradient(op, gradient, _):
    """Sends the gradient of each row back to the rank that sent the row."""
    returned, _ = _exchange(gradient, op.outputs[1], None, False, op.get_attr('process_set_id'))
    return returned, None
