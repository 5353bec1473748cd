# SPDX-License-Identifier: Apache-2.0
"""A cgroup (version 1 or 2) with little memory, for one job. Only root can make it."""

import os
import time

_TOP = '/sys/fs/cgroup'
_LEAVE_SECONDS = 20  # how long the kernel may take to remove the last process


def _is_version_1():
    return os.path.isdir(os.path.join(_TOP, 'memory'))


def _write(directory, name, value):
    with open(os.path.join(directory, name), 'w') as file:
        file.write(str(value))


class Cgroup:
    def __init__(self, name, memory):
        """Makes the cgroup; raises OSError if that is impossible. ``memory``: the limit in bytes."""
        self.path = os.path.join(_TOP, 'memory' if _is_version_1() else '', name)
        os.mkdir(self.path)
        try:
            if _is_version_1():
                _write(self.path, 'memory.limit_in_bytes', memory)
            else:
                _write(self.path, 'memory.max', memory)
                _write(self.path, 'memory.swap.max', 0)
        except OSError:
            os.rmdir(self.path)
            raise

    def inside(self, command):
        """Returns a command that runs ``command`` in the cgroup."""
        return ['sh', '-c', 'echo $$ >"$0/cgroup.procs" && exec "$@"', self.path, *command]

    def remove(self):
        """Removes the cgroup once its processes have ended."""
        end = time.monotonic() + _LEAVE_SECONDS
        while True:
            try:
                os.rmdir(self.path)
                return
            except OSError:
                if time.monotonic() > end:
                    raise
                time.sleep(0.05)


def obstacle():
    """Returns why this machine cannot make such a cgroup, or an empty text."""
    try:
        Cgroup(f'hvd-try-{os.getpid()}', 1 << 20).remove()
    except OSError as error:
        return f'needs a memory cgroup of its own: {error}'
    return ''
