# SPDX-License-Identifier: Apache-2.0
"""Broadcast and allgather of picklable objects, for all front ends."""

import ctypes
import io

from horovod.common import requests
from horovod.common.basics import basics
from horovod.common.library import DEVICE_CPU, DTYPES, lib
from horovod.common.process_sets import global_process_set, set_id

try:
    import cloudpickle as pickle  # supports lambdas and classes of __main__, too
except ImportError:
    import pickle

_BYTE, _LENGTH = DTYPES['uint8'], DTYPES['int64']


def _pickled(obj):
    """Returns the pickled object as a ctypes array over the stream's own memory."""
    stream = io.BytesIO()
    pickle.dump(obj, stream)
    view = stream.getbuffer()
    return (ctypes.c_char * len(view)).from_buffer(view)


def _broadcast(name, array, dtype, root_rank, set_number):
    """Broadcasts the root's array into the arrays of the other ranks."""
    address = ctypes.addressof(array)
    requests.synchronize(requests.add(requests.broadcast(
        (name, address, address, (len(array),), dtype, DEVICE_CPU), root_rank, set_number, array,
        lambda request: None)))


def broadcast_object(obj, root_rank=0, name=None, process_set=global_process_set):
    """Returns the object of rank root_rank on all ranks of the process set; collective.

    The root's object must be picklable; on the other ranks ``obj`` is ignored. The root gets its
    own object back, the others get a copy. root_rank is a rank of the job, even if process_set has
    only some of its ranks.
    """
    name = requests.tensor_name('broadcast_object', name, process_set)
    number = set_id(process_set, 'Broadcast')
    is_root = basics.rank() == root_rank
    data = _pickled(obj) if is_root else None
    length = (ctypes.c_int64 * 1)(len(data) if is_root else 0)
    _broadcast(f'{name}.size', length, _LENGTH, root_rank, number)
    if not is_root:
        data = (ctypes.c_char * length[0])()
    _broadcast(f'{name}.data', data, _BYTE, root_rank, number)
    return obj if is_root else pickle.loads(memoryview(data))


def _start_gather(name, array, dtype, set_number):
    """Starts an allgather of the ranks' arrays; the handle's result is all their bytes."""
    def finish(request):
        address, rows = request.take(0)
        try:
            return ctypes.string_at(address, rows * ctypes.sizeof(array._type_)) if rows else b''
        finally:
            lib.hvd_free(address)

    tensor = (name, ctypes.addressof(array), None, (len(array),), dtype, DEVICE_CPU)
    return requests.add(requests.allgather([tensor], set_number, array, finish))


def allgather_object(obj, name=None, process_set=global_process_set):
    """Returns the list of the objects of all ranks of the process set, in rank order; collective.
    The objects must be picklable."""
    name = requests.tensor_name('allgather_object', name, process_set)
    number = set_id(process_set, 'Allgather')
    data = _pickled(obj)
    lengths = _start_gather(f'{name}.sizes', (ctypes.c_int64 * 1)(len(data)), _LENGTH, number)
    everything = _start_gather(f'{name}.data', data, _BYTE, number)
    lengths = memoryview(requests.synchronize(lengths)).cast('q')
    stream = io.BytesIO(requests.synchronize(everything))
    return [pickle.loads(stream.read(length)) for length in lengths]
