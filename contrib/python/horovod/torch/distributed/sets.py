# SPDX-License-Identifier: Apache-2.0
"""Process sets of libhvd for groups: their members alone make them and give them up."""

import zlib
from collections import Counter
from ctypes import c_int, c_void_p

from horovod.common.library import (INPROGRESS, SET_GLOBAL, Error, check_ended, check_submitted,
                                    lib)

_PATIENCE_MS = 500
_MOST_RANKS_NAMED = 8

_made = Counter()  # groups of the same ranks in this job
_removals = []  # requests under way


def _start(function, *arguments):
    pointer, error = c_void_p(), Error()
    check_submitted(function(*arguments, pointer, error), error)
    return pointer


def next_label(ranks):
    """Tells the next group of these ranks from others, the same on all of them. torch's names of
    groups are not: ranks outside a group that is made by its members alone do not count it."""
    number, _made[tuple(ranks)] = _made[tuple(ranks)], _made[tuple(ranks)] + 1
    text = ','.join(map(str, ranks))
    if len(ranks) > _MOST_RANKS_NAMED:
        text = f'{len(ranks)} from {ranks[0]} {zlib.crc32(text.encode()):08x}'
    return f'ranks {text}' + (f' ({number + 1})' if number > 0 else '')


def begin():
    """A job begins."""
    _made.clear()
    _reap()


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
    """Gives a set up. That ends when all members have called it and their calls have ended, for which
    nobody waits: a call that has timed out may never end."""
    _reap()
    _removals.append(_start(lib.hvd_set_remove_start, set_id))


def _reap():
    for request in list(_removals):
        if lib.hvd_wait_for(request, 0, None) != INPROGRESS:
            _removals.remove(request)
            lib.hvd_request_free(request)


def _end(request):
    error, status = Error(), INPROGRESS
    while status == INPROGRESS:
        status = lib.hvd_wait_for(request, _PATIENCE_MS, error)
    check_ended(status, error)
