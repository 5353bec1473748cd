# SPDX-License-Identifier: Apache-2.0
"""reducescatter: each rank gets its rows of the reduction."""

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
    """This rank's part of the reduction over all ranks: rows / size rows, the first
    rows % size ranks one more. Average and Sum only. Differentiable."""
    return _scatter([tensor], device_dense, compression, op,
                    (prescale_factor, postscale_factor), name, process_set,
                    ignore_name_scope)[0]


def grouped_reducescatter(tensors, device_dense='', compression=Compression.none, op=Average,
                          process_set=global_process_set, prescale_factor=1.0,
                          postscale_factor=1.0, name=None, ignore_name_scope=False):
    """The same for several tensors, done as one; differentiable."""
    tensors = list(tensors)
    return _scatter(tensors, device_dense, compression, op, (prescale_factor, postscale_factor),
                    name, process_set, ignore_name_scope) if tensors else []


@tf.RegisterGradient('HorovodReducescatter')
def _gradient(op, *gradients):
    """The ranks' gradients of their parts, times what the parts were multiplied by."""
    set_id = op.get_attr('process_set_id')
    factor = float(op.get_attr('prescale_factor')) * float(op.get_attr('postscale_factor'))
    factor = tf.constant(factor, tf.float64)
    if op.get_attr('reduce_op') == Sum:
        factor *= tf.cast(ops.horovod_size(process_set_id=set_id), tf.float64)
    return [scaled(each, factor) for each in gather(list(gradients), None, False, set_id)]
