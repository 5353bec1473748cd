# SPDX-License-Identifier: Apache-2.0
"""Whether this process inherited its membership in the job through fork.

A forked child, such as a DataLoader's worker, has a copy of the parent's memory and none of its
threads. It may read its rank; it must not communicate, nor end what belongs to the parent.
"""

import os

from horovod.common.library import lib

_inherited = False


def is_inherited():
    return _inherited


def _note_fork():
    global _inherited
    _inherited = _inherited or lib.hvd_is_initialized() == 1


os.register_at_fork(after_in_child=_note_fork)
