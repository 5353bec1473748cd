# SPDX-License-Identifier: Apache-2.0
"""Process sets. There is the global one; others can be described but not registered yet."""

from horovod.common import membership

UNKNOWN_SET = 'Process set provided does not exist, or has not been registered.'


class ProcessSet:
    """A set of global ranks, sorted. ``process_set_id`` is None until it is registered."""

    def __init__(self, ranks_or_comm):
        self.process_set_id = None
        self.mpi_comm = None
        self.ranks = sorted(ranks_or_comm)

    def size(self):
        """The number of ranks in the set."""
        return len(self._members())

    def rank(self):
        """This process's index in the set; ValueError when it is not a member."""
        if not self.included():
            raise ValueError('Process is not part of provided process set.')
        return self.ranks.index(membership.numbers().rank)

    def included(self):
        """Whether this process is a member."""
        return membership.numbers().rank in self._members()

    def _members(self):
        if self.process_set_id is None:
            raise ValueError(UNKNOWN_SET)
        membership.numbers()  # there must be some
        return self.ranks

    def __repr__(self):
        return f'ProcessSet(process_set_id={self.process_set_id}, ranks={self.ranks})'


# All ranks of the job. Its ranks are filled in by init.
global_process_set = ProcessSet([])
global_process_set.process_set_id = 0


def set_id(process_set, operation):
    """The number that libhvd knows the set by; ValueError when it knows none."""
    if process_set.process_set_id is None:
        raise ValueError(f'{operation}: {UNKNOWN_SET}')
    return process_set.process_set_id


def add_process_set(process_set):
    """Not available: there is the global process set only."""
    raise NotImplementedError('hvd.add_process_set() is not supported by this version of hvd: '
                              'it has the global process set only')


def remove_process_set(process_set):
    """Not available: there is the global process set only."""
    raise NotImplementedError('hvd.remove_process_set() is not supported by this version of '
                              'hvd: it has the global process set only')
