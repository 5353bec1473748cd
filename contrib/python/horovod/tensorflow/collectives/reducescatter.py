# SPDX-License-Identifier: Apache-2.0
"""reducescatter: reduces a tensor over the ranks and gives each rank a part of dimension 0."""

import tensorflow as tf

from horovod.common.arguments import check_compression, check_op
from horovod.common.basics import Average, Sum
from horovod.common.process_sets import global_process_set
from horovod.tensorflow.collectives.nodes import (describe, factors, gather, independent,
                                                  placed_on, set_number, tensors_of)
from horovod.tensorflow.collectives.scaling import scaled
from horovod.tensorflow.compression import Compression
from horovod.tensorflow.native import ops


def _scatter(tensors, device, compression, op, scale, name, process_set, ignore_name_scope):
    if check_op(op) not in (Average, Sum):
        raise tf.errors.AbortedError(None, None,
                                     'Reducescatter currently only supports AVERAGE and SUM.')
    check_compression(compression)
    with placed_on(device):
        compressed, contexts = zip(*map(compression.compress, tensors_of(tensors)))
        kind = 'HorovodReducescatter' if len(tensors) == 1 else 'HorovodGroupedReducescatter'
        parts = independent(ops.horovod_reducescatter(
            list(compressed), reduce_op=op, **factors(scale),
            **describe(kind, compressed, name, ignore_name_scope, set_number(process_set))))
        return [compression.decompress(*each) for each in zip(parts, contexts)]


def reducescatter(tensor, device_dense='', compression=Compression.none, op=Average, name=None,
                  process_set=global_process_set, ignore_name_scope=False, prescale_factor=1.0,
                  postscale_factor=1.0):
    """Reduces the tensor over all ranks and returns this rank's part of dimension 0.

    tensor: the same shape and dtype on all ranks, with at least one dimension. Rank i of N gets
        rows // N rows, and the first rows % N ranks get one more. Differentiable.
    device_dense: where to place the operation, as for tf.device.
    compression: a member of hvd.Compression: the type in which the tensor travels.
    op: Average (the default) or Sum; tf.errors.AbortedError otherwise.
    name, ignore_name_scope: as for allreduce.
    process_set: the ranks that take part; all of them must call this.
    prescale_factor, postscale_factor: multiply the tensor before and after the reduction.
    """
    return _scatter([tensor], device_dense, compression, op,
                    (prescale_factor, postscale_factor), name, process_set,
                    ignore_name_scope)[0]


def grouped_reducescatter(tensors, device_dense='', compression=Compression.none, op=Average,
                          process_set=global_process_set, prescale_factor=1.0,
                          postscale_factor=1.0, name=None, ignore_name_scope=False):
    """Like reducescatter for a list of tensors, reduced as one; returns a list. Differentiable."""
    tensors = list(tensors)
    return _scatter(tensors, device_dense, compression, op, (prescale_factor, postscale_factor),
                    name, process_set, ignore_name_scope) if tensors else []


@tf.RegisterGradient('HorovodReducescatter')
def _gradient(op, *gradients):
    """Gathers the gradients of the parts, scaled as in the forward pass; with Sum also multiplied
    by the number of ranks, as in Horovod."""
    set_id = op.get_attr('process_set_id')
    factor = float(op.get_attr('prescale_factor')) * float(op.get_attr('postscale_factor'))
    factor = tf.constant(factor, tf.float64)
    if op.get_attr('reduce_op') == Sum:
        factor *= tf.cast(ops.horovod_size(process_set_id=set_id), tf.float64)
    return [scaled(each, factor) for each in gather(list(gradients), None, False, set_id)]
