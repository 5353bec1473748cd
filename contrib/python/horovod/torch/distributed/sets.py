# SPDX-License-Identifier: Apache-2.0
"""Process sets of libhvd for groups: their members alone make them and give them up."""

import zlib
from collections import Counter

from horovod.common import requests
from horovod.common.library import INPROGRESS, quick

_MOST_RANKS_NAMED = 8

_made = Counter()  # groups of the same ranks in this job
_ends = []  # requests under way, to remove a set or to give it up


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
    _forget_ended()


def add_set(ranks, label):
    """The number of a new set of these ranks of the job, who all call this with the same label."""
    return requests.synchronize(requests.add(requests.create_set(ranks, label)))


def remove_set(set_id):
    """Gives a set up. That ends when all members have called it and their calls have ended, for which
    nobody waits: a call that has timed out may never end."""
    _forget_ended()
    _ends.append(requests.remove_set(set_id))


def abort_set(set_id, why):
    """Its calls fail on all members, who are told why. Nobody waits for that."""
    _forget_ended()
    _ends.append(requests.abort_set(set_id, why))


def _forget_ended():
    _ends[:] = [each for each in _ends if quick.wait_for(each.pointer, 0, None) == INPROGRESS]
