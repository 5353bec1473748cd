# SPDX-License-Identifier: Apache-2.0
"""Collectives on MXNet's arrays.

allreduce and broadcast are asynchronous, like MXNet's own functions: they return at once, and
reading a result waits for it. The other collectives wait. ``priority`` is that of MXNet's engine:
it starts the ready operation with the highest priority first. The ranks match arrays by ``name``;
without a name they match unnamed arrays by the order of the calls. All ranks of ``process_set``
must call a collective.
"""

import mxnet as mx
import numpy as np

from horovod.common import requests
from horovod.common.arguments import (check_iterable, check_priority, check_rank,
                                      check_scale)
from horovod.common.basics import Average
from horovod.common.process_sets import global_process_set, set_id
from horovod.common.reductions import choose_op, choose_scatter_op, scattered_shape
from horovod.mxnet import arrays, engine
from horovod.mxnet.errors import raises_mxnets


def _staged(tensors):
    return [arrays.usable(tensor) for tensor in tensors]


def _write_back(staged, tensors):
    for copy, tensor in zip(staged, tensors):
        if copy is not tensor:
            copy.copyto(tensor)


def _reduce(names, tensors, wires, in_place, op, scale, priority, process_set):
    """Reduces all tensors with one request; returns the results. ``wires``: see engine.push."""
    prescale, postscale = check_scale(scale)
    settings = {'op': op, 'prescale': prescale, 'postscale': postscale,
                'priority': check_priority(priority), 'set': set_id(process_set, 'Allreduce')}
    targets = _staged(tensors) if in_place else [arrays.copied(each) for each in tensors]
    engine.push(engine.ALLREDUCE, names, targets, wires, settings)
    if not in_place:
        return [arrays.placed(*each) for each in zip(targets, tensors)]
    _write_back(targets, tensors)
    return tensors


def _reduce_one(tensor, in_place, op, name, scale, priority, process_set):
    names = [requests.tensor_name('allreduce', name, process_set)]
    tensors = [arrays.check(tensor)]
    return _reduce(names, tensors, [0], in_place, op, scale, priority, process_set)[0]


def _reduce_group(tensors, in_place, op, name, scale, priority, process_set):
    tensors = arrays.check_all(tensors)
    names = requests.tensor_names('grouped_allreduce', name, len(tensors), process_set)
    return _reduce(names, tensors, [0] * len(names), in_place, op, scale, priority, process_set)


@raises_mxnets
def reduce_gradients(tensors, wires, name, op, scale, priority, process_set):
    """Reduces a list of arrays in place, as one request. ``wires``: see engine.push."""
    tensors = arrays.check_all(tensors)
    if len(tensors) == 1:
        names = [requests.tensor_name('allreduce', name, process_set)]
    else:
        names = requests.tensor_names('grouped_allreduce', name, len(tensors), process_set)
    _reduce(names, tensors, wires, True, op, scale, priority, process_set)


@raises_mxnets
def allreduce(tensor, average=None, name=None, priority=0, prescale_factor=1.0,
              postscale_factor=1.0, process_set=global_process_set, op=None):
    """Returns the reduction of the array over all ranks, as a new array; does not wait for it.

    tensor: the same shape and dtype on all ranks.
    average: deprecated; use op.
    prescale_factor, postscale_factor: multiply the array before and after the reduction.
    op: Average (the default), Sum, Min, Max, Product or Adasum.

    Reading the result raises an MXNetError that is also a HorovodInternalError if the ranks'
    arrays do not match or a rank has died.
    """
    return _reduce_one(tensor, False, choose_op(op, average), name,
                       (prescale_factor, postscale_factor), priority, process_set)


@raises_mxnets
def allreduce_(tensor, average=None, name=None, priority=0, prescale_factor=1.0,
               postscale_factor=1.0, process_set=global_process_set, op=None):
    """Like allreduce, but in place; returns the array."""
    return _reduce_one(tensor, True, choose_op(op, average), name,
                       (prescale_factor, postscale_factor), priority, process_set)


@raises_mxnets
def grouped_allreduce(tensors, average=None, name=None, priority=0, prescale_factor=1.0,
                      postscale_factor=1.0, process_set=global_process_set, op=None):
    """Like allreduce for a list of arrays on one device, reduced as one; returns new arrays."""
    return _reduce_group(tensors, False, choose_op(op, average), name,
                         (prescale_factor, postscale_factor), priority, process_set)


@raises_mxnets
def grouped_allreduce_(tensors, average=None, name=None, priority=0, prescale_factor=1.0,
                       postscale_factor=1.0, process_set=global_process_set, op=None):
    """Like grouped_allreduce, but in place; returns the arrays."""
    return _reduce_group(tensors, True, choose_op(op, average), name,
                         (prescale_factor, postscale_factor), priority, process_set)


def _broadcast(target, root_rank, name, priority, process_set):
    settings = {'root': check_rank('root_rank', root_rank),
                'priority': check_priority(priority), 'set': set_id(process_set, 'Broadcast')}
    names = [requests.tensor_name('broadcast', name, process_set)]
    engine.push(engine.BROADCAST, names, [target], [0], settings)


@raises_mxnets
def broadcast(tensor, root_rank, name=None, priority=0, process_set=global_process_set):
    """Returns the array of rank root_rank, as a new array; does not wait for it. All ranks pass
    arrays of the same shape and dtype. root_rank is a rank of the job, even if process_set has only
    some of its ranks."""
    target = arrays.copied(arrays.check(tensor))
    _broadcast(target, root_rank, name, priority, process_set)
    return arrays.placed(target, tensor)


@raises_mxnets
def broadcast_(tensor, root_rank, name=None, priority=0, process_set=global_process_set):
    """Like broadcast, but overwrites the array; returns it."""
    staged = arrays.usable(arrays.check(tensor))
    _broadcast(staged, root_rank, name, priority, process_set)
    _write_back([staged], [tensor])
    return tensor


def _gather(names, tensors, process_set):
    sources = _staged(tensors)
    described = [arrays.describe(*each) for each in zip(names, sources)]
    results = requests.synchronize(requests.add(requests.allgather(
        described, set_id(process_set, 'Allgather'), sources,
        lambda request: [arrays.taken(request, index, source)
                         for index, source in enumerate(sources)])))
    return [arrays.placed(*each) for each in zip(results, tensors)]


@raises_mxnets
def allgather(tensor, name=None, priority=0, process_set=global_process_set):
    """Returns the arrays of all ranks, concatenated along dimension 0 in rank order. Ranks may
    differ in dimension 0 only. ``priority`` has no effect."""
    names = [requests.tensor_name('allgather', name, process_set)]
    return _gather(names, [arrays.check(tensor)], process_set)[0]


@raises_mxnets
def grouped_allgather(tensors, name=None, priority=0, process_set=global_process_set):
    """Like allgather for a list of arrays on one device, gathered as one; returns a list."""
    tensors = arrays.check_all(tensors)
    names = requests.tensor_names('grouped_allgather', name, len(tensors), process_set)
    return _gather(names, tensors, process_set)


def _counts(splits):
    """Returns splits as a list of row counts, or None. ValueError unless it is None, a sequence of
    whole numbers or an int32 array of one dimension."""
    if splits is None:
        return None
    if len(getattr(splits, 'shape', (0,))) != 1:
        raise ValueError('alltoall expects a 1D splits tensor')
    check_iterable('splits', splits, 'whole numbers of rows, one for each rank')
    if isinstance(splits, mx.nd.NDArray):
        if splits.dtype != np.int32:
            raise ValueError('alltoall expects splits to contain 32-bit integer elements. These '
                             f'are of {np.dtype(splits.dtype).name}: give mx.nd.array() '
                             "dtype='int32'")
        splits = splits.asnumpy()
    try:
        counts = [int(count) for count in splits]
    except (TypeError, ValueError):
        counts = []
    if counts != list(splits):
        raise ValueError(f'splits is {list(splits)}: expected whole numbers of rows')
    return counts


@raises_mxnets
def alltoall(tensor, splits=None, name=None, priority=0, process_set=global_process_set):
    """Sends splits[i] rows to rank i, or equal parts without splits. Returns the received rows in
    rank order; with splits, returns (received rows, how many rows came from each rank as an int32
    array). ``priority`` has no effect."""
    source = arrays.usable(arrays.check(tensor))
    counts = _counts(splits)

    def finish(request):
        return (arrays.taken(request, 0, source),
                request.received_splits(process_set.size()))

    described = arrays.describe(requests.tensor_name('alltoall', name, process_set), source)
    output, received = requests.synchronize(requests.add(requests.alltoall(
        described, counts, set_id(process_set, 'Alltoall'), source, finish)))
    output = arrays.placed(output, tensor)
    if splits is None:
        return output
    return output, arrays.vector(received, 'int32', tensor)


def _scatter(names, tensors, op, scale, process_set):
    identity = set_id(process_set, 'Reducescatter')
    op = choose_scatter_op(op)
    sources = _staged(tensors)
    if not all(source.shape for source in sources):
        raise ValueError('reducescatter does not support scalar inputs: a part of dimension 0 '
                         'is left to each rank')
    targets = [arrays.empty(source, scattered_shape(source.shape, process_set))
               for source in sources]
    described = [arrays.describe(*each) for each in zip(names, sources, targets)]
    requests.synchronize(requests.add(requests.reducescatter(
        described, op, scale, identity, (sources, targets), lambda request: None)))
    return [arrays.placed(*each) for each in zip(targets, tensors)]


@raises_mxnets
def reducescatter(tensor, op=Average, name=None, priority=0, process_set=global_process_set,
                  prescale_factor=1.0, postscale_factor=1.0):
    """Reduces the array over all ranks and returns this rank's part of dimension 0: rank i of N
    gets rows // N rows, and the first rows % N ranks get one more. op: Average or Sum.
    ``priority`` has no effect."""
    names = [requests.tensor_name('reducescatter', name, process_set)]
    return _scatter(names, [arrays.check(tensor)], op, (prescale_factor, postscale_factor),
                    process_set)[0]


@raises_mxnets
def grouped_reducescatter(tensors, op=Average, name=None, priority=0,
                          process_set=global_process_set, prescale_factor=1.0,
                          postscale_factor=1.0):
    """Like reducescatter for a list of arrays on one device, reduced as one; returns a list."""
    tensors = arrays.check_all(tensors)
    names = requests.tensor_names('grouped_reducescatter', name, len(tensors), process_set)
    return _scatter(names, tensors, op, (prescale_factor, postscale_factor), process_set)
