# SPDX-License-Identifier: Apache-2.0
"""Compares the collectives of libhvd on NumPy arrays with the reference. The test starts them with
the functions that the front ends use."""

import ctypes
import types

import numpy as np

from horovod.common import basics, requests
from horovod.common.exceptions import HorovodInternalError
from horovod.common.library import DEVICE_CPU, DTYPES, lib
from horovod.common.process_sets import set_id
from horovod.common.reductions import scattered_shape
from reference.arithmetic import ALL, FLOATS
from reference.check import Outcome, ReferenceTest, arguments


def _memory(values, dtype):
    """Returns the array that libhvd reads; for bfloat16, the upper halves of float32 values."""
    if dtype == 'bfloat16':
        bits = values.reshape(-1).astype(np.float32).view(np.uint32) >> np.uint32(16)
        return bits.astype(np.uint16).reshape(values.shape)
    return np.array(values, dtype)


def _array(memory, dtype):
    if dtype == 'bfloat16':
        bits = memory.reshape(-1).astype(np.uint32) << np.uint32(16)
        memory = bits.view(np.float32).reshape(memory.shape)
    return (memory.astype(np.float64) if dtype in FLOATS else memory), dtype


def _describe(name, dtype, source, target=None):
    return (name, source.ctypes.data, None if target is None else target.ctypes.data, source.shape,
            DTYPES[dtype], DEVICE_CPU)


def _taken(request, index, like):
    address, rows = request.take(index)
    result = np.empty((rows, *like.shape[1:]), like.dtype)
    if address:
        ctypes.memmove(result.ctypes.data, address, result.nbytes)
        lib.hvd_free(address)
    return result


class Functions:
    """Functions that start collectives. Each takes the arrays of a group, the names of their
    dtypes, and the arguments of the front ends' functions. It returns a request. The result of the
    request is the list of arrays; for an alltoall, a pair of that list and the received splits."""

    @staticmethod
    def allreduce(arrays, dtypes, op, prescale_factor, postscale_factor, process_set):
        targets = [np.empty_like(each) for each in arrays]
        return Functions._reduce(arrays, targets, dtypes, op, (prescale_factor, postscale_factor),
                                 process_set)

    @staticmethod
    def allreduce_(arrays, dtypes, op, prescale_factor, postscale_factor, process_set):
        return Functions._reduce(arrays, arrays, dtypes, op, (prescale_factor, postscale_factor),
                                 process_set)

    @staticmethod
    def _reduce(arrays, targets, dtypes, op, scale, process_set):
        names = requests.tensor_names('allreduce', None, len(arrays), process_set)
        described = [_describe(*each) for each in zip(names, dtypes, arrays, targets)]
        return requests.allreduce(described, op, scale, set_id(process_set, 'Allreduce'),
                                  (arrays, targets), lambda request: targets)

    @staticmethod
    def reducescatter(arrays, dtypes, op, prescale_factor, postscale_factor, process_set):
        names = requests.tensor_names('reducescatter', None, len(arrays), process_set)
        targets = [np.empty(scattered_shape(each.shape, process_set), each.dtype)
                   for each in arrays]
        described = [_describe(*each) for each in zip(names, dtypes, arrays, targets)]
        return requests.reducescatter(described, op, (prescale_factor, postscale_factor),
                                      set_id(process_set, 'Reducescatter'), (arrays, targets),
                                      lambda request: targets)

    @staticmethod
    def allgather(arrays, dtypes, process_set):
        names = requests.tensor_names('allgather', None, len(arrays), process_set)
        described = [_describe(*each) for each in zip(names, dtypes, arrays)]
        return requests.allgather(described, set_id(process_set, 'Allgather'), arrays,
                                  lambda request: [_taken(request, *each)
                                                   for each in enumerate(arrays)])

    @staticmethod
    def broadcast(arrays, dtypes, root_rank, process_set):
        return Functions._broadcast(arrays[0], np.empty_like(arrays[0]), dtypes[0], root_rank,
                                    process_set)

    @staticmethod
    def broadcast_(arrays, dtypes, root_rank, process_set):
        return Functions._broadcast(arrays[0], arrays[0], dtypes[0], root_rank, process_set)

    @staticmethod
    def _broadcast(source, target, dtype, root_rank, process_set):
        name = requests.tensor_name('broadcast', None, process_set)
        return requests.broadcast(_describe(name, dtype, source, target), root_rank,
                                  set_id(process_set, 'Broadcast'), (source, target),
                                  lambda request: [target])

    @staticmethod
    def alltoall(arrays, dtypes, process_set, splits=None):
        name = requests.tensor_name('alltoall', None, process_set)
        return requests.alltoall(
            _describe(name, dtypes[0], arrays[0]), splits, set_id(process_set, 'Alltoall'), arrays,
            lambda request: ([_taken(request, 0, arrays[0])],
                             request.received_splits(process_set.size())))


class C:
    """Describes libhvd for check.py."""

    name = 'libhvd'
    repeats = 2
    kinds = ('allreduce', 'reducescatter', 'allgather', 'broadcast', 'alltoall')
    variants = {
        'allreduce': [('allreduce', False), ('allreduce', True),
                      ('allreduce_', False), ('allreduce_', True)],
        'reducescatter': [('reducescatter', False), ('reducescatter', True)],
        'allgather': [('allgather', False), ('allgather', True)],
        'broadcast': [('broadcast', False), ('broadcast_', False)],
        'alltoall': [('alltoall', False)],
    }
    layouts = ()
    compressions = {}
    scaled = ('allreduce', 'reducescatter')
    scatter_ops = ('Average', 'Sum', 'Min', 'Max', 'Product')
    errors = {
        'dtype': KeyError,
        'average of booleans': [ValueError],
        'Adasum of these ranks': [NotImplementedError],
        'Adasum of integers': [ValueError],
        'op of a reducescatter': [ValueError],
        'no dimension': [HorovodInternalError],
    }
    foreign = ()

    def dtypes(self, kind):
        return ALL

    def run(self, case, seed, process_set):
        place = case.ranks.index(process_set.ranks[process_set.rank()])
        inputs = [_memory(case.inputs(seed, index)[place], dtype)
                  for index, dtype in enumerate(case.dtypes)]
        names = types.SimpleNamespace(**{op: getattr(basics, op) for op in (case.op,) if op})
        request = getattr(Functions, case.variant)(
            inputs, case.dtypes, **arguments(case, names, process_set, place))
        results, received = requests.synchronize(requests.add(request)), None
        if case.kind == 'alltoall':
            results, received = results
        return Outcome([_array(*each) for each in zip(results, case.dtypes)],
                       [_array(*each)[0] for each in zip(inputs, case.dtypes)], received=received)


class CTest(ReferenceTest):
    front = C()


del ReferenceTest  # unittest must not run the base class
