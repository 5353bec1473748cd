# SPDX-License-Identifier: Apache-2.0
"""allreduce of dense and sparse tensors, one by one or in groups."""

import tensorflow as tf

from horovod.common.arguments import (check_compression, check_name, check_scale,
                                      check_set)
from horovod.common.basics import Adasum, Average, Sum
from horovod.common.process_sets import global_process_set
from horovod.common.reductions import check_adasum_ranks, choose_op
from horovod.tensorflow.collectives.allgather import allgather
from horovod.tensorflow.collectives.nodes import (in_turn, placed_on, reduce, set_number,
                                                  size_of, tensors_of)
from horovod.tensorflow.collectives.scaling import scaled
from horovod.tensorflow.compression import Compression


@tf.RegisterGradient('HorovodAllreduce')
def _gradient(op, *gradients):
    """Reduces the gradients in the same way as the tensors."""
    scale = (float(op.get_attr('prescale_factor')), float(op.get_attr('postscale_factor')))
    return reduce(list(gradients), op.get_attr('reduce_op'), scale, None, False,
                  op.get_attr('process_set_id'))


def _check_sparse(tensor, op):
    """Raises NotImplementedError or TypeError if a sparse tensor cannot be reduced with this op by
    gathering its rows."""
    if op not in (Average, Sum):
        raise NotImplementedError(
            'The Adasum reduction does not currently support sparse tensors. As a workaround '
            'please pass sparse_as_dense=True to DistributedOptimizer' if op == Adasum else
            'Only Sum and Average ops are supported with tf.IndexedSlices')
    if op == Average and tensor.dtype == tf.bool:
        raise TypeError('there is no average of booleans; use hvd.Sum')


def _reduce_sparse(tensor, device, op, scale, name, process_set, ignore_name_scope):
    """Reduces a tf.IndexedSlices by gathering the rows of all ranks. In the result an index may
    occur once for each rank."""
    check_name(name)
    with placed_on(device):
        values, indices = in_turn(('values', 'indices'), lambda what: allgather(
            getattr(tensor, what), None if name is None else f'{name}.{what}', ignore_name_scope,
            process_set))
        values = scaled(values, scale[0] * scale[1],
                        size_of(process_set) if op == Average else None)
    return tf.IndexedSlices(values, indices, dense_shape=tensor.dense_shape)


def _reduce_dense(tensors, device, compression, op, scale, name, process_set,
                  ignore_name_scope):
    check_compression(compression)
    with placed_on(device):
        tensors = tensors_of(tensors)
        if op == Adasum:
            check_set(process_set)
            check_adasum_ranks(process_set.size())
        compressed, contexts = zip(*map(compression.compress, tensors))
        reduced = reduce(list(compressed), op, scale, name, ignore_name_scope,
                         set_number(process_set))
        return [compression.decompress(*each) for each in zip(reduced, contexts)]


def allreduce(tensor, average=None, device_dense='', device_sparse='',
              compression=Compression.none, op=None, prescale_factor=1.0, postscale_factor=1.0,
              name=None, process_set=global_process_set, ignore_name_scope=False):
    """Returns the reduction of the tensor over all ranks, as a new tensor. Differentiable.

    tensor: the same shape and dtype on all ranks; or a tf.IndexedSlices, for Average and Sum only,
        whose result has the rows of all ranks.
    average: deprecated; use op.
    device_dense, device_sparse: where to place the operation, as for tf.device.
    compression: a member of hvd.Compression: the type in which the tensor travels.
    op: Average (the default), Sum, Min, Max, Product or Adasum.
    prescale_factor, postscale_factor: multiply the tensor before and after the reduction.
    name: the ranks match tensors by name. Without a name: in a graph by the names of its tensors,
        in eager mode by the order of the calls.
    process_set: the ranks that take part; all of them must call this.
    ignore_name_scope: in a graph, the ranks match the tensor by its name without the name scope.
    """
    op = choose_op(op, average)
    scale = check_scale((prescale_factor, postscale_factor))
    if isinstance(tensor, tf.IndexedSlices):
        _check_sparse(tensor, op)
        return _reduce_sparse(tensor, device_sparse, op, scale, name, process_set,
                              ignore_name_scope)
    return _reduce_dense([tensor], device_dense, compression, op, scale, name, process_set,
                         ignore_name_scope)[0]


def grouped_allreduce(tensors, average=None, device_dense='', device_sparse='',
                      compression=Compression.none, op=None, prescale_factor=1.0,
                      postscale_factor=1.0, process_set=global_process_set,
                      ignore_name_scope=False, name=None):
    """Like allreduce for a list of tensors; the dense ones are reduced as one. Returns a list.
    Differentiable."""
    op = choose_op(op, average)
    scale = check_scale((prescale_factor, postscale_factor))
    tensors = list(tensors)
    sparse = [index for index, each in enumerate(tensors) if isinstance(each, tf.IndexedSlices)]
    dense = [index for index in range(len(tensors)) if index not in sparse]
    for index in sparse:
        _check_sparse(tensors[index], op)  # before the dense ones are submitted

    def reduce_part(part):
        if part == dense:
            return _reduce_dense([tensors[index] for index in dense], device_dense, compression,
                                 op, scale, name, process_set, ignore_name_scope)
        return [_reduce_sparse(tensors[index], device_sparse, op, scale,
                               None if name is None else f'{name}.{index}', process_set,
                               ignore_name_scope) for index in part]

    reduced = list(tensors)
    parts = ([dense] if dense else []) + [[index] for index in sparse]
    for part, results in zip(parts, in_turn(parts, reduce_part)):
        for index, each in zip(part, results):
            reduced[index] = each
    return reduced
