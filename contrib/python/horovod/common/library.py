# SPDX-License-Identifier: Apache-2.0
"""Finds and loads libhvd.so, and declares its structs and prototypes for ctypes
(collectives/hvd.h).

The import of this module loads the library. If that fails, a script that probes for Horovod gets an
ImportError. Calls of ``lib`` release the GIL, because they may wait. ``quick`` has the functions
that a training loop calls for each tensor and that never wait. Its calls keep the GIL: if they
released it, another thread could take it and hold it for its whole time slice of 5 ms.
"""

import ctypes
import glob
import os
from ctypes import CFUNCTYPE, POINTER, Structure, c_char, c_char_p, c_double, c_int
from ctypes import c_int32, c_int64, c_size_t, c_uint64, c_void_p, sizeof

from horovod.common.exceptions import (HorovodInternalError, HorovodVersionMismatchError,
                                       JobShutDownError, RanksDisagreeError)

# enum hvd_status
INPROGRESS = 1
ERR_ARG = -1
ERR_MISMATCH = -7
ERR_UNSUPPORTED = -8
ERR_SHUTDOWN = -10
ERR_DISMISSED = -12

# enum hvd_dtype, by the name that torch and numpy use
DTYPES = {name: number for number, name in enumerate(
    ('uint8', 'int8', 'uint16', 'int16', 'int32', 'int64', 'float16', 'float32', 'float64',
     'bool', 'bfloat16', 'uint32', 'uint64'))}

DEVICE_CPU = -1
SET_GLOBAL = 0
CALL_UNORDERED = 1 << 63
OUTPUT_IF_FITS = 1 << (8 * sizeof(c_size_t) - 1)
ANY_SOURCE = -1

NOT_INITIALIZED = 'Horovod has not been initialized; use hvd.init().'


class Error(Structure):
    """struct hvd_error"""
    _fields_ = [('status', c_int), ('text', c_char * 512)]

    def message(self):
        return self.text.decode('utf-8', 'replace')


class Tensor(Structure):
    """struct hvd_tensor"""
    _fields_ = [('name', c_char_p), ('input', c_void_p), ('output', c_void_p),
                ('shape', POINTER(c_int64)), ('ndim', c_int), ('dtype', c_int),
                ('device', c_int), ('wire', c_int), ('stream', c_void_p),
                ('output_bytes', c_size_t), ('call', c_uint64)]


# The functions put and get of struct hvd_store.
StorePut = CFUNCTYPE(c_int, c_void_p, c_char_p, c_void_p, c_size_t, POINTER(Error))
StoreGet = CFUNCTYPE(c_int, c_void_p, c_char_p, c_int, POINTER(c_void_p), POINTER(c_size_t),
                     POINTER(Error))


class Store(Structure):
    """struct hvd_store"""
    _fields_ = [('context', c_void_p), ('put', StorePut), ('get', StoreGet)]


_REDUCTION = [POINTER(Tensor), c_int, c_int, c_double, c_double, c_int, POINTER(c_void_p),
              POINTER(Error)]

# name: (result, arguments)
_PROTOTYPES = {
    'hvd_init': (c_int, [POINTER(Error)]),
    'hvd_init_ranks': (c_int, [POINTER(c_int), c_int, POINTER(Error)]),
    'hvd_init_with': (c_int, [c_int, c_int, POINTER(Store), POINTER(Error)]),
    'hvd_shutdown': (c_int, []),
    'hvd_shutdown_because': (c_int, [c_char_p]),
    'hvd_rank': (c_int, []),
    'hvd_size': (c_int, []),
    'hvd_local_rank': (c_int, []),
    'hvd_local_size': (c_int, []),
    'hvd_cross_rank': (c_int, []),
    'hvd_cross_size': (c_int, []),
    'hvd_is_homogeneous': (c_int, []),
    'hvd_allreduce_start': (c_int, _REDUCTION),
    'hvd_reducescatter_start': (c_int, _REDUCTION),
    'hvd_allgather_start': (c_int, [POINTER(Tensor), c_int, c_int, POINTER(c_void_p),
                                    POINTER(Error)]),
    'hvd_broadcast_start': (c_int, [POINTER(Tensor), c_int, c_int, POINTER(c_void_p),
                                    POINTER(Error)]),
    'hvd_alltoall_start': (c_int, [POINTER(Tensor), POINTER(c_int32), c_int, c_int,
                                   POINTER(c_void_p), POINTER(Error)]),
    'hvd_barrier_start': (c_int, [c_int, POINTER(c_void_p), POINTER(Error)]),
    'hvd_send_start': (c_int, [POINTER(Tensor), c_int, c_int64, c_int, POINTER(c_void_p),
                               POINTER(Error)]),
    'hvd_recv_start': (c_int, [POINTER(Tensor), c_int, c_int64, c_int, POINTER(c_void_p),
                               POINTER(Error)]),
    'hvd_request_source': (c_int, [c_void_p]),
    'hvd_join_start': (c_int, [POINTER(c_void_p), POINTER(Error)]),
    'hvd_request_last_rank': (c_int, [c_void_p]),
    'hvd_set_add_start': (c_int, [POINTER(c_int), c_int, POINTER(c_void_p), POINTER(Error)]),
    'hvd_set_create_start': (c_int, [POINTER(c_int), c_int, c_char_p, POINTER(c_void_p),
                                     POINTER(Error)]),
    'hvd_request_set': (c_int, [c_void_p]),
    'hvd_set_remove_start': (c_int, [c_int, POINTER(c_void_p), POINTER(Error)]),
    'hvd_set_abort_start': (c_int, [c_int, c_char_p, POINTER(c_void_p), POINTER(Error)]),
    'hvd_set_count': (c_int, []),
    'hvd_set_ids': (c_int, [POINTER(c_int)]),
    'hvd_set_size': (c_int, [c_int]),
    'hvd_set_ranks': (c_int, [c_int, POINTER(c_int)]),
    'hvd_timeline_start': (c_int, [c_char_p, c_int, POINTER(Error)]),
    'hvd_timeline_stop': (c_int, [POINTER(Error)]),
    'hvd_stop_on_signals': (c_int, []),
    'hvd_should_stop': (c_int, [POINTER(Error)]),
    'hvd_set_exit_status': (c_int, [c_int]),
    'hvd_test': (c_int, [c_void_p, POINTER(Error)]),
    'hvd_wait_for': (c_int, [c_void_p, c_int, POINTER(Error)]),
    'hvd_wait_on': (c_int, [c_void_p, c_void_p, c_int, POINTER(Error)]),
    'hvd_gpu_synchronize': (c_int, [c_int, POINTER(Error)]),
    'hvd_gpu_memory_is_short': (c_int, []),
    'hvd_gpu_memory_freed': (None, []),
    'hvd_request_rows': (c_int, [c_void_p, c_int, POINTER(c_int64)]),
    'hvd_request_copy': (c_int, [c_void_p, c_int, c_void_p, c_void_p, POINTER(Error)]),
    'hvd_cuda_version': (c_int, []),
    'hvd_nccl_version': (c_int, []),
    'hvd_request_take': (c_int, [c_void_p, c_int, POINTER(c_void_p), POINTER(c_int64)]),
    'hvd_request_splits': (c_int, [c_void_p, POINTER(c_int32)]),
    'hvd_request_start': (c_int, [c_void_p, POINTER(Tensor), POINTER(Error)]),
    'hvd_request_free': (None, [c_void_p]),
    'hvd_free': (None, [c_void_p]),
    'hvd_count_step': (c_int, []),
    'hvd_section_begin': (c_int, [c_char_p]),
    'hvd_section_end': (c_int, []),
    'hvd_elastic': (c_int, []),
    'hvd_elastic_updates': (c_int, []),
    'hvd_elastic_ready': (c_int, []),
    'hvd_version': (c_char_p, []),
}


# Where to look for libhvd.so: paths relative to PREFIX/lib of an install, or to the root of a
# source tree. Either is three folders above this package. A wheel has the library inside the
# package.
_PLACES = ('libhvd.so', '*/libhvd.so', '../lib64/libhvd.so', 'build/collectives/libhvd.so')


def _find():
    chosen = os.environ.get('HVD_LIBRARY')
    if chosen:
        return chosen
    package = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
    anchor = os.path.normpath(os.path.join(package, '..', '..', '..'))
    for place in (os.path.join(package, '_hvd', 'lib', 'libhvd.so'), *_PLACES):
        found = sorted(glob.glob(os.path.join(anchor, place)))
        if found:
            return os.path.normpath(found[0])
    return 'libhvd.so'  # the dynamic linker searches for it


class _Quick:
    """Functions of libhvd that never wait, called without releasing the GIL. Most have no
    prototype, which saves most of the time of a call. So callers must pass exactly what C
    expects: an int, byref(), or a ctypes object such as c_double(1.0)."""

    def __init__(self, path):
        library = ctypes.PyDLL(path)
        self.wait_for = library.hvd_wait_for  # only with a timeout of 0 ms
        self.gpu_memory_is_short = library.hvd_gpu_memory_is_short
        self.request_start = library.hvd_request_start
        self.request_free = library.hvd_request_free  # only for a request that has ended
        self.request_free.argtypes = [c_void_p]
        self.request_free.restype = None
        self.allreduce_start = library.hvd_allreduce_start
        self.reducescatter_start = library.hvd_reducescatter_start
        self.reduce_start = library.hvd_reduce_start
        self.broadcast_start = library.hvd_broadcast_start
        self.gather_start = library.hvd_gather_start
        self.scatter_start = library.hvd_scatter_start
        self.allgather_start = library.hvd_allgather_start
        self.alltoall_start = library.hvd_alltoall_start
        self.barrier_call_start = library.hvd_barrier_call_start
        self.send_start = library.hvd_send_start
        self.recv_start = library.hvd_recv_start


def _open(path):
    """Loads libhvd. A container may lack libraries that libhvd needs. In this case the function
    first loads the copies that an install has in hvd/spare. The dynamic linker then finds these
    copies by name, wherever the install is mounted."""
    try:
        return ctypes.CDLL(path)
    except OSError:
        spare = sorted(glob.glob(os.path.join(os.path.dirname(path), 'hvd', 'spare', '*')))
        if not [ctypes.CDLL(file) for file in spare]:
            raise
        return ctypes.CDLL(path)


def _load(path):
    try:
        library = _open(path)
    except OSError as cause:
        raise ImportError(
            f'cannot load libhvd.so: {cause}. Looked at HVD_LIBRARY, beside {__file__} and '
            'where the dynamic linker looks: install hvd with "meson install", or set '
            'HVD_LIBRARY to the path of libhvd.so') from None
    for name, (result, arguments) in _PROTOTYPES.items():
        try:
            function = getattr(library, name)
        except AttributeError:
            raise HorovodVersionMismatchError(
                f'{path} has no {name}: it and {__file__} come from different installs of hvd; '
                'reinstall both together') from None
        function.restype = result
        function.argtypes = arguments
    return library, _Quick(path)


PATH = _find()
lib, quick = _load(PATH)
VERSION = lib.hvd_version().decode()


def companion(package_file, folder, name):
    """Returns the path of a front end's own native library. An install has it beside
    ``package_file``, a build tree in ``folder`` of contrib/python/native. ImportError if it is in
    neither."""
    build = os.path.dirname(os.path.dirname(os.path.realpath(PATH)))
    places = (os.path.join(os.path.dirname(os.path.realpath(package_file)), name),
              os.path.join(build, 'contrib', 'python', 'native', folder, name))
    for place in places:
        if os.path.exists(place):
            return place
    raise ImportError(f'there is no {name}, looked for at {" and ".join(places)}: install hvd with '
                      '"meson install"')


def check_submitted(status, error):
    """Raises the exception for a status of a start function: ValueError for wrong arguments,
    NotImplementedError for unsupported ones, otherwise the exception of check_ended(). Does nothing
    if the status is 0."""
    if status == ERR_ARG:
        raise ValueError(error.message())
    if status == ERR_UNSUPPORTED:
        raise NotImplementedError(error.message())
    check_ended(status, error)


def check_ended(status, error):
    """Raises HorovodInternalError or a subclass for the status of a collective that has failed.
    Does nothing if the status is 0."""
    if status == ERR_SHUTDOWN:
        raise JobShutDownError(error.message())
    if status == ERR_MISMATCH:
        raise RanksDisagreeError(error.message())
    if status != 0:
        raise HorovodInternalError(error.message())
