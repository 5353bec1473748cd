# SPDX-License-Identifier: Apache-2.0
"""What torch from 2.14 on looks for behind a process group: a Backend for its devices."""

import torch
import torch.distributed as dist

try:
    from torch._C._distributed_c10d import Backend
except ImportError:
    Backend = None  # before torch 2.0


def _make(group, timeout):
    class Companion(Backend):
        """Passes on to the group, which has all collectives."""

        def __init__(self):
            super().__init__(group.rank(), group.size())
            self._options = Backend.Options('hvd', timeout)

        @property
        def options(self):
            return self._options

        @property
        def supports_coalescing(self):
            return False

        def getBackendName(self):
            return 'hvd'

        def _set_sequence_number_for_group(self):
            """Calls are matched by their names."""

        def monitored_barrier(self, options, wait_all_ranks=False):
            group.monitored_barrier(options.timeout, wait_all_ranks)

    return Companion()


def attach(group, timeout):
    """Gives the group a backend; False: this torch has none in Python."""
    if Backend is None or not hasattr(group, '_register_backend'):
        return False
    try:
        group.companion = _make(group, timeout)
    except TypeError:
        return False  # before torch 2.14
    kind = dist.ProcessGroup.BackendType.CUSTOM
    for device in ('cpu', 'cuda'):
        group._register_backend(torch.device(device), kind, group.companion)
    group._set_default_backend(kind)
    return True
