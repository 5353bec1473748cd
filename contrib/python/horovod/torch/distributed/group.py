# SPDX-License-Identifier: Apache-2.0
"""A process group of torch.distributed over libhvd."""

import torch.distributed as dist

from horovod.common.basics import basics
from horovod.common.library import SET_GLOBAL
from horovod.torch.distributed import job, sets
from horovod.torch.distributed.calls import Calls
from horovod.torch.distributed.collectives import Collectives, start_barrier
from horovod.torch.distributed.companion import attach
from horovod.torch.distributed.meeting import meet
from horovod.torch.distributed.messages import Messages


class Group(Collectives, Messages, dist.ProcessGroup):
    """One group: the default one, or one of some of its ranks."""

    def __init__(self, options):
        rank, size = options.group_rank, options.group_size
        super().__init__(rank, size)
        self._rank, self._size = rank, size
        self._name = str(options.group_id)
        self._is_default = not options.global_ranks_in_group
        self._is_open = True
        timeout = options.timeout.total_seconds()
        ranks = list(options.global_ranks_in_group or range(size))
        if ranks != sorted(ranks):
            raise NotImplementedError('the backend hvd numbers the ranks of a group in ascending '
                                      f'order, found {ranks}: leave out sort_ranks=False')
        if self._is_default:
            calls = Calls('', SET_GLOBAL, timeout)
            if job.join(options.store, rank, size, lambda: start_barrier(calls).wait()):
                sets.begin()
            self.begin_collectives(calls, ranks)
        else:
            label = sets.next_label(ranks)
            self.begin_collectives(
                Calls(f'{label}: ', sets.add_set(ranks, label), timeout), ranks)
        # Older releases of torch refuse monitored_barrier, which needs the store, and take what is
        # left of a destroyed group's store for that of the next group.
        self._store = options.store if attach(self, options.timeout) else None

    def shutdown(self):
        """All ranks of the group call this, by destroy_process_group."""
        if not self._is_open:
            return
        self._is_open = False
        if self._is_default:
            job.leave()
        elif basics.is_initialized():
            try:
                sets.remove_set(self.calls.set_id)
            except RuntimeError:
                pass  # a rank has died or left: the set is gone with the job
        self.calls.end()

    def abort(self):
        """Ends the job for all ranks, whose calls fail, if this is the default group."""
        self._is_open = False
        if self._is_default:
            job.leave(at_once=True)
        self.calls.end()

    # --- what torch asks for ---

    def rank(self):
        return self._rank

    def size(self):
        return self._size

    def name(self):
        return 'hvd'

    def getBackendName(self):
        return 'hvd'

    @property
    def pg_name(self):
        return self._name

    @property
    def group_name(self):
        return self._name

    def _set_group_name(self, name):
        self._name = name

    def _set_sequence_number_for_group(self):
        """Calls are matched by their names."""

    def _get_sequence_number_for_group(self):
        return 0

    def _set_default_timeout(self, timeout):
        self.calls.timeout = timeout.total_seconds()

    def monitored_barrier(self, timeout=None, wait_all_ranks=False):
        """A barrier by the store, after which rank 0 names the ranks that have not come."""
        seconds = self.calls.timeout if timeout is None else timeout.total_seconds()
        meet(self._store, self._rank, self._size, seconds, wait_all_ranks)
