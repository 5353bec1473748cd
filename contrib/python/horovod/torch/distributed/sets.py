# SPDX-License-Identifier: Apache-2.0
"""Process sets of libhvd for groups: their members alone make them and give them up."""

from ctypes import c_int, c_void_p

from horovod.common.library import SET_GLOBAL, Error, check_ended, check_submitted, lib

__all__ = ['SET_GLOBAL', 'add_set', 'remove_set']

_PATIENCE_MS = 500
_INPROGRESS = 1


def _start(function, *arguments):
    pointer, error = c_void_p(), Error()
    check_submitted(function(*arguments, pointer, error), error)
    return pointer


def add_set(ranks, label):
    """The number of a new set of these ranks of the job, who all call this with the same label."""
    request = _start(lib.hvd_set_create_start, (c_int * len(ranks))(*ranks), len(ranks),
                     label.encode())
    try:
        _end(request)
        return lib.hvd_request_set(request)
    finally:
        lib.hvd_request_free(request)


def remove_set(set_id):
    """Gives a set up. Ends when all members have called it."""
    request = _start(lib.hvd_set_remove_start, set_id)
    try:
        _end(request)
    finally:
        lib.hvd_request_free(request)


def _end(request):
    error, status = Error(), _INPROGRESS
    while status == _INPROGRESS:
        status = lib.hvd_wait_for(request, _PATIENCE_MS, error)
    check_ended(status, error)
