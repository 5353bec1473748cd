# SPDX-License-Identifier: Apache-2.0
"""Exceptions that scripts can catch."""


class HorovodInternalError(RuntimeError):
    """A collective failed: ranks disagree, a rank died, or the job was shut down."""


class JobShutDownError(HorovodInternalError):
    """A collective failed because a rank has called ``shutdown``."""


class RanksDisagreeError(HorovodInternalError):
    """A collective failed because the ranks asked for different things under one name."""


class HostsUpdatedInterrupt(RuntimeError):
    """The hosts of an elastic job changed between two steps.

    ``skip_sync`` is true if the training can continue without a sync: hosts were only removed.
    """

    def __init__(self, skip_sync=False):
        super().__init__('the hosts of the job changed')
        self.skip_sync = skip_sync


def get_version_mismatch_message(name, version, installed_version):
    """Returns the text of a HorovodVersionMismatchError."""
    return (f'the framework {name} is of version {version}, expected {installed_version}: install '
            'that one, or start the script with a Python that has it')


class HorovodVersionMismatchError(ImportError):
    """The package and libhvd.so come from different installs, or hvd has no front end for the
    installed version of a framework."""
