# SPDX-License-Identifier: Apache-2.0
"""Collectives on MXNet's arrays.

allreduce and broadcast return at once, as MXNet's own functions do: reading a result waits for it.
The other collectives wait, since the shape of their results depends on other ranks, or is smaller
than that of their inputs. ``priority`` is that of the engine: of the operations that are ready, the
one with the highest priority starts first.
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
    """One request for all tensors; returns the results. ``wires``: see engine.push."""
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
    """Reduces arrays in place, as one where they are several. ``wires``: see engine.push."""
    tensors = arrays.check_all(tensors)
    if len(tensors) == 1:
        names = [requests.tensor_name('allreduce', name, process_set)]
    else:
        names = requests.tensor_names('grouped_allreduce', name, len(tensors), process_set)
    _reduce(names, tensors, wires, True, op, scale, priority, process_set)


@raises_mxnets
def allreduce(tensor, average=None, name=None, priority=0, prescale_factor=1.0,
              postscale_factor=1.0, process_set=global_process_set, op=None):
    """The reduction of the array over all ranks, in a new array."""
    return _reduce_one(tensor, False, choose_op(op, average), name,
                       (prescale_factor, postscale_factor), priority, process_set)


@raises_mxnets
def allreduce_(tensor, average=None, name=None, priority=0, prescale_factor=1.0,
               postscale_factor=1.0, process_set=global_process_set, op=None):
    """Reduces in place over all ranks; returns the array."""
    return _reduce_one(tensor, True, choose_op(op, average), name,
                       (prescale_factor, postscale_factor), priority, process_set)


@raises_mxnets
def grouped_allreduce(tensors, average=None, name=None, priority=0, prescale_factor=1.0,
                      postscale_factor=1.0, process_set=global_process_set, op=None):
    """The reductions of several arrays, done as one, in new arrays."""
    return _reduce_group(tensors, False, choose_op(op, average), name,
                         (prescale_factor, postscale_factor), priority, process_set)


@raises_mxnets
def grouped_allreduce_(tensors, average=None, name=None, priority=0, prescale_factor=1.0,
                       postscale_factor=1.0, process_set=global_process_set, op=None):
    """Reduces several arrays in place, as one; returns them."""
    return _reduce_group(tensors, True, choose_op(op, average), name,
                         (prescale_factor, postscale_factor), priority, process_set)


def _broadcast(target, root_rank, name, priority, process_set):
    settings = {'root': check_rank('root_rank', root_rank),
                'priority': check_priority(priority), 'set': set_id(process_set, 'Broadcast')}
    names = [requests.tensor_name('broadcast', name, process_set)]
    engine.push(engine.BROADCAST, names, [target], [0], settings)


@raises_mxnets
def broadcast(tensor, root_rank, name=None, priority=0, process_set=global_process_set):
    """The array of the global rank root_rank, in a new array."""
    target = arrays.copied(arrays.check(tensor))
    _broadcast(target, root_rank, name, priority, process_set)
    return arrays.placed(target, tensor)


@raises_mxnets
def broadcast_(tensor, root_rank, name=None, priority=0, process_set=global_process_set):
    """Broadcasts in place; returns the array. root_rank is a global rank."""
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
    """The ranks' arrays, concatenated along dimension 0 in rank order."""
    names = [requests.tensor_name('allgather', name, process_set)]
    return _gather(names, [arrays.check(tensor)], process_set)[0]


@raises_mxnets
def grouped_allgather(tensors, name=None, priority=0, process_set=global_process_set):
    """The same for several arrays, gathered as one."""
    tensors = arrays.check_all(tensors)
    names = requests.tensor_names('grouped_allgather', name, len(tensors), process_set)
    return _gather(names, tensors, process_set)


def _counts(splits):
    """The list of row counts in splits: None, a sequence of numbers or an int32 array."""
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
    """Sends splits[i] rows to rank i, or equal parts. Returns what came, in rank order; with
    splits, also how many rows came from each rank, as int32."""
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
    """This rank's part, along dimension 0, of the reduction over all ranks. Average or Sum."""
    names = [requests.tensor_name('reducescatter', name, process_set)]
    return _scatter(names, [arrays.check(tensor)], op, (prescale_factor, postscale_factor),
                    process_set)[0]


@raises_mxnets
def grouped_reducescatter(tensors, op=Average, name=None, priority=0,
                          process_set=global_process_set, prescale_factor=1.0,
                          postscale_factor=1.0):
    """The same for several arrays, done as one."""
    tensors = arrays.check_all(tensors)
    names = requests.tensor_names('grouped_reducescatter', name, len(tensors), process_set)
    return _scatter(names, tensors, op, (prescale_factor, postscale_factor), process_set)
