# SPDX-License-Identifier: Apache-2.0
"""A process group of torch.distributed over libhvd: the default one, or one of some of its ranks.

torch calls a process group in Python directly, which is fastest. Where a group has several backends
("cpu:hvd,cuda:nccl"), torch has a group of its own, and looks for a Backend for each device.
"""

import torch
import torch.distributed as dist

from horovod.torch.distributed import recorder
from horovod.torch.distributed.collectives import Collectives
from horovod.torch.distributed.member import Member
from horovod.torch.distributed.messages import Messages

try:
    from torch._C._distributed_c10d import Backend
except ImportError:
    Backend = object  # before torch 2.0

_CUSTOM = getattr(getattr(dist.ProcessGroup, 'BackendType', None), 'CUSTOM', None)


class _Interface(Collectives, Messages):
    """What torch calls of both."""

    def shutdown(self):
        self.member.leave()

    def abort(self):
        self.member.abort()

    def rank(self):
        return self.member.rank

    def size(self):
        return self.member.size

    def name(self):
        return 'hvd'

    def getBackendName(self):
        return 'hvd'

    def _set_sequence_number_for_group(self):
        """Calls are matched by their names."""

    def _get_sequence_number_for_group(self):
        return 0


class Part(_Interface, Backend):
    """For some devices of a group. Torch has backends in Python from 2.14 on: TypeError before."""

    def __init__(self, member):
        super().__init__(member.rank, member.size)
        self._options = Backend.Options('hvd', member.timeout)
        self.begin(member)

    @property
    def options(self):
        return self._options

    @property
    def supports_coalescing(self):
        return False

    def set_timeout(self, timeout):
        self.calls.timeout = timeout.total_seconds()

    def monitored_barrier(self, options, wait_all_ranks=False):
        self.member.meet(options.timeout, wait_all_ranks)


class Group(_Interface, dist.ProcessGroup):
    """For all devices."""

    def __init__(self, member):
        super().__init__(member.rank, member.size)
        self.begin(member)
        # Older releases of torch refuse monitored_barrier, which needs the store, and take what is
        # left of a destroyed group's store for that of the next group.
        if not self._attach_part():
            member.store = None

    def _attach_part(self):
        """Gives the group what torch from 2.14 on looks for behind it; False: this torch does not."""
        if _CUSTOM is None or not hasattr(self, '_register_backend'):
            return False
        try:
            self._part = Part(self.member)
        except TypeError:
            return False
        for device in ('cpu', 'cuda'):
            self._register_backend(torch.device(device), _CUSTOM, self._part)
        self._set_default_backend(_CUSTOM)
        return True

    @property
    def pg_name(self):
        return self.member.name

    @property
    def group_name(self):
        return self.member.name

    def _set_group_name(self, name):
        self.member.name = name

    def _set_default_timeout(self, timeout):
        self.calls.timeout = timeout.total_seconds()

    def monitored_barrier(self, timeout=None, wait_all_ranks=False):
        self.member.meet(timeout, wait_all_ranks)


def _has_other_backends(group):
    """Whether this is one of several backends of torch's group: another has been registered, or is
    what the group takes for its main one. None: this torch does not tell its group."""
    if group is None:
        return False
    return bool(getattr(group, '_device_types', None)) or (
        _CUSTOM is not None and group._get_backend_name() != 'custom')


def make(options):
    """What torch asks a backend for: a process group, or a Backend for a group that has others, too.
    Before 2.14 torch lets nobody but C++ write the latter, and hvd has all devices."""
    member = Member(options)
    if _has_other_backends(getattr(options, 'process_group', None)):
        try:
            return Part(member)
        except TypeError:
            pass
    if recorder.size_asked_for() > 0:
        from horovod.torch.distributed.recorded import RecordedGroup
        return RecordedGroup(member)
    return Group(member)
