# SPDX-License-Identifier: Apache-2.0
"""alltoall: sends a part of dimension 0 to each rank."""

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
    """Sends splits[i] rows to rank i, or equal parts, and returns the received rows in rank order.
    With splits, also returns how many rows came from each rank. Differentiable."""
    tensor = tf.convert_to_tensor(tensor)
    counts = tf.convert_to_tensor([] if splits is None else splits, dtype=tf.int32)
    output, received = _exchange(tensor, counts, name, ignore_name_scope,
                                 set_number(process_set))
    return output if splits is None else (output, received)


@tf.RegisterGradient('HorovodAlltoall')
def _gradient(op, gradient, _):
    """Sends each row back to where it came from."""
    returned, _ = _exchange(gradient, op.outputs[1], None, False, op.get_attr('process_set_id'))
    return returned, None
