# SPDX-License-Identifier: Apache-2.0
"""Process groups of torch.distributed over libhvd: the default group, and groups of some ranks.

torch calls a ProcessGroup written in Python directly, which is fastest. For a group with several
backends ("cpu:hvd,cuda:nccl"), torch makes its own ProcessGroup and needs a Backend for each
device.
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
    """The methods that torch calls on a ProcessGroup and on a Backend."""

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
        """Does nothing: libhvd matches calls by their names, not by sequence numbers."""

    def _get_sequence_number_for_group(self):
        return 0


class Part(_Interface, Backend):
    """The backend for some devices of a group. torch supports backends in Python since 2.14; older
    releases raise TypeError."""

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
    """A process group whose only backend is hvd."""

    def __init__(self, member):
        super().__init__(member.rank, member.size)
        self.begin(member)
        # Only monitored_barrier needs the store, and older releases of torch do not have it for
        # groups written in Python. Drop the store there: these releases would use the store of a
        # destroyed group again for the next one if it still exists.
        if not self._attach_part():
            member.store = None

    def _attach_part(self):
        """Registers a Backend with the group, as torch since 2.14 expects. Returns False if this
        torch has no such backends."""
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
    """Whether torch's group has other backends than hvd: another one is registered already or is
    the group's default. ``group`` is None if this torch does not pass it."""
    if group is None:
        return False
    return bool(getattr(group, '_device_types', None)) or (
        _CUSTOM is not None and group._get_backend_name() != 'custom')


def make(options):
    """Makes the object that torch asks a backend for: a ProcessGroup, or a Backend for a group that
    also has other backends. Before torch 2.14 a Backend cannot be written in Python, so hvd then
    handles all devices of the group."""
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
