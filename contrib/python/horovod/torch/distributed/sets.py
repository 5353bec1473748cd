# SPDX-License-Identifier: Apache-2.0
"""The process sets of libhvd for groups. Only the members make and remove them."""

import zlib
from collections import Counter

from horovod.common import requests
from horovod.common.library import INPROGRESS, quick

_MOST_RANKS_NAMED = 8

_made = Counter()  # {ranks: how many groups of these ranks this job has made}
_ends = []  # requests under way that remove or abort a set


def next_label(ranks):
    """Returns a unique label for the next group of these ranks, the same on all of them. torch's
    names of groups may differ between ranks: torch numbers the groups, and a rank does not count
    groups that others make without it."""
    number, _made[tuple(ranks)] = _made[tuple(ranks)], _made[tuple(ranks)] + 1
    text = ','.join(map(str, ranks))
    if len(ranks) > _MOST_RANKS_NAMED:
        text = f'{len(ranks)} from {ranks[0]} {zlib.crc32(text.encode()):08x}'
    return f'ranks {text}' + (f' ({number + 1})' if number > 0 else '')


def begin():
    """Forgets the groups of an earlier job, at the start of a job."""
    _made.clear()
    _forget_ended()


def add_set(ranks, label):
    """Makes a process set of these ranks of the job; returns its number. Its members all call this
    with the same label."""
    return requests.synchronize(requests.add(requests.create_set(ranks, label)))


def remove_set(set_id):
    """Starts to remove a set, without waiting. The removal ends when all members have called this
    and their calls have ended; a call that has timed out may never end."""
    _forget_ended()
    _ends.append(requests.remove_set(set_id))


def abort_set(set_id, why):
    """Makes the set's calls fail on all members, with an error that contains ``why``. Does not
    wait."""
    _forget_ended()
    _ends.append(requests.abort_set(set_id, why))


def _forget_ended():
    _ends[:] = [each for each in _ends if quick.wait_for(each.pointer, 0, None) == INPROGRESS]
