# SPDX-License-Identifier: Apache-2.0
"""This process as a member of a group of torch.distributed."""

from horovod.common.basics import basics
from horovod.common.library import SET_GLOBAL
from horovod.torch.distributed import job, sets
from horovod.torch.distributed.calls import Calls
from horovod.torch.distributed.collectives import start_barrier
from horovod.torch.distributed.meeting import meet


class Member:
    """This process in a group: the default group, which is the job of hvd, or a group of some
    ranks, which is a process set. ``rank`` and ``size`` are those in the group; ``ranks`` are the
    members' ranks in the job."""

    def __init__(self, options):
        """Joins the group; all members call this. ``options``: torch's options for a new
        backend."""
        self.rank, self.size = options.group_rank, options.group_size
        self.name = str(options.group_id)
        self.timeout = options.timeout
        self.ranks = list(options.global_ranks_in_group or range(self.size))
        self.store = options.store
        self.label = None  # a unique name of the group; None for the default group
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
        """Leaves the group, for destroy_process_group; all members call this."""
        if not self._is_open:
            return
        self._is_open = False
        if self._is_default:
            job.leave()
        elif basics.is_initialized():
            try:
                sets.remove_set(self.calls.set_id)
            except RuntimeError:
                pass  # a rank has died or left, so the job with all its sets is over
        self.calls.end()

    def abort(self):
        """Makes the calls of all members fail. For the default group this ends the job."""
        self._is_open = False
        if self._is_default:
            job.leave(at_once=True)
        elif basics.is_initialized():
            self.calls.abort('its group was aborted')
        self.calls.end()

    def meet(self, timeout, wait_all_ranks):
        """A barrier through the store; if it times out, the error on rank 0 names the missing
        ranks. ``timeout``: a timedelta, or None for the group's timeout."""
        if self.store is None:
            raise NotImplementedError('the backend hvd has monitored_barrier with PyTorch 2.14 or later')
        seconds = self.calls.timeout if timeout is None else timeout.total_seconds()
        meet(self.store, self.rank, self.size, seconds, wait_all_ranks)
