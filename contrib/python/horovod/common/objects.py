# SPDX-License-Identifier: Apache-2.0
"""Broadcast and gathering of any picklable object, for all front ends."""

import ctypes
import io

from horovod.common import requests
from horovod.common.basics import basics
from horovod.common.library import DEVICE_CPU, DTYPES, lib
from horovod.common.process_sets import global_process_set, set_id

try:
    import cloudpickle as pickle  # also lambdas and classes of __main__
except ImportError:
    import pickle

_BYTE, _LENGTH = DTYPES['uint8'], DTYPES['int64']


def _pickled(obj):
    """The object as an array of bytes; the memory is the stream's, without a copy."""
    stream = io.BytesIO()
    pickle.dump(obj, stream)
    view = stream.getbuffer()
    return (ctypes.c_char * len(view)).from_buffer(view)


def _broadcast(name, array, dtype, root_rank, set_number):
    """Fills the array with that of the root."""
    address = ctypes.addressof(array)
    requests.synchronize(requests.add(requests.broadcast(
        (name, address, address, (len(array),), dtype, DEVICE_CPU), root_rank, set_number, array,
        lambda request: None)))


def broadcast_object(obj, root_rank=0, name=None, process_set=global_process_set):
    """The root's object, which must be picklable; the other ranks may pass anything."""
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
    """Starts to gather the ranks' arrays; the handle's result is their bytes."""
    def finish(request):
        address, rows = request.take(0)
        try:
            return ctypes.string_at(address, rows * ctypes.sizeof(array._type_)) if rows else b''
        finally:
            lib.hvd_free(address)

    tensor = (name, ctypes.addressof(array), None, (len(array),), dtype, DEVICE_CPU)
    return requests.add(requests.allgather([tensor], set_number, array, finish))


def allgather_object(obj, name=None, process_set=global_process_set):
    """The list of the ranks' objects, which must be picklable, in rank order."""
    name = requests.tensor_name('allgather_object', name, process_set)
    number = set_id(process_set, 'Allgather')
    data = _pickled(obj)
    lengths = _start_gather(f'{name}.sizes', (ctypes.c_int64 * 1)(len(data)), _LENGTH, number)
    everything = _start_gather(f'{name}.data', data, _BYTE, number)
    lengths = memoryview(requests.synchronize(lengths)).cast('q')
    stream = io.BytesIO(requests.synchronize(everything))
    return [pickle.loads(stream.read(length)) for length in lengths]
