# SPDX-License-Identifier: Apache-2.0
"""This process as a member of a group of torch.distributed."""

from horovod.common.basics import basics
from horovod.common.library import SET_GLOBAL
from horovod.torch.distributed import job, sets
from horovod.torch.distributed.calls import Calls
from horovod.torch.distributed.collectives import start_barrier
from horovod.torch.distributed.meeting import meet


class Member:
    """Of the default group, which is hvd's job, or of a group of some of its ranks, a process set.
    ``rank`` and ``size`` are the group's, ``ranks`` the job's numbers of its members."""

    def __init__(self, options):
        """options: what torch gives a backend's maker; all members call this."""
        self.rank, self.size = options.group_rank, options.group_size
        self.name = str(options.group_id)
        self.timeout = options.timeout
        self.ranks = list(options.global_ranks_in_group or range(self.size))
        self.store = options.store
        self.label = None  # of a group other than the default one: tells it from those
        self._is_default = not options.global_ranks_in_group
        self._is_open = True
        if self.ranks != sorted(self.ranks):
            raise NotImplementedError('the backend hvd numbers the ranks of a group in ascending '
                                      f'order, found {self.ranks}: leave out sort_ranks=False')
        self.calls = self._join_job() if self._is_default else self._make_set()

    def _join_job(self):
        calls = Calls('', SET_GLOBAL, self.timeout.total_seconds())
        if job.join(self.store, self.rank, self.size, lambda: start_barrier(calls).wait()):
            sets.begin()
        return calls

    def _make_set(self):
        self.label = sets.next_label(self.ranks)
        return Calls(f'{self.label}: ', sets.add_set(self.ranks, self.label),
                     self.timeout.total_seconds())

    def leave(self):
        """All members call this, by destroy_process_group."""
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
        """The calls of all members fail. The default group's is the end of the job."""
        self._is_open = False
        if self._is_default:
            job.leave(at_once=True)
        elif basics.is_initialized():
            self.calls.abort('its group was aborted')
        self.calls.end()

    def meet(self, timeout, wait_all_ranks):
        """A barrier by the store, after which rank 0 names the ranks that have not come. ``timeout``:
        a timedelta, or None for the group's."""
        if self.store is None:
            raise NotImplementedError('the backend hvd has monitored_barrier with PyTorch 2.14 or later')
        seconds = self.calls.timeout if timeout is None else timeout.total_seconds()
        meet(self.store, self.rank, self.size, seconds, wait_all_ranks)
