# SPDX-License-Identifier: Apache-2.0
"""The exceptions that scripts catch."""


class HorovodInternalError(RuntimeError):
    """A collective failed: ranks disagree, a rank died, or the job was shut down."""


class JobShutDownError(HorovodInternalError):
    """A collective failed because a rank has called ``shutdown``."""


class RanksDisagreeError(HorovodInternalError):
    """A collective failed because the ranks asked for different things under one name."""


class HostsUpdatedInterrupt(RuntimeError):
    """The set of hosts changed between two steps of an elastic job.

    ``skip_sync`` is true when no rank needs the state of another to go on.
    """

    def __init__(self, skip_sync=False):
        super().__init__('the hosts of the job changed')
        self.skip_sync = skip_sync


def get_version_mismatch_message(name, version, installed_version):
    return (f'the framework {name} is of version {version}, expected {installed_version}: install '
            'that one, or start the script with a Python that has it')


class HorovodVersionMismatchError(ImportError):
    """The package and libhvd.so come from different installs, or there is no front end for this
    version of a framework."""
