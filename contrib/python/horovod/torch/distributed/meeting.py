# SPDX-License-Identifier: Apache-2.0
"""torch's monitored_barrier, through the group's store: rank 0 finds out which ranks are
missing."""

import time
from datetime import timedelta


def _wait(store, key, until):
    """Waits for the key. Returns whether the store has it in time."""
    left = max(until - time.monotonic(), 0.001)
    try:
        store.wait([key], timedelta(seconds=left))
        return True
    except RuntimeError:
        return False


def meet(store, rank, size, seconds, wait_all_ranks):
    """Waits until all ranks have called this. RuntimeError if some do not within ``seconds``: on
    rank 0 it names the first missing rank, or with ``wait_all_ranks`` all of them."""
    until = time.monotonic() + seconds
    limit = f'{round(seconds * 1000)} ms'
    meeting = f'monitored_barrier.{store.add(f"monitored_barrier.{rank}", 1)}'
    if rank != 0:
        store.set(f'{meeting}.{rank}', 'here')
        if not _wait(store, f'{meeting}.all', until):
            raise RuntimeError(f'Rank {rank} successfully reached monitoredBarrier, but received '
                               'errors while waiting for send/recv from rank 0: rank 0 has not '
                               f'come in {limit}, or misses other ranks')
        return
    if seconds <= 0:
        raise RuntimeError(f'Rank 0 timed out in monitoredBarrier after {limit}')
    missing = []
    for other in range(1, size):
        if not _wait(store, f'{meeting}.{other}', until):
            missing.append(other)
            if not wait_all_ranks:
                break
    if missing:
        who = ', '.join(map(str, missing))
        raise RuntimeError(f'{"Ranks" if wait_all_ranks else "Rank"} {who} failed to pass '
                           f'monitoredBarrier in {limit}')
    store.set(f'{meeting}.all', 'here')
