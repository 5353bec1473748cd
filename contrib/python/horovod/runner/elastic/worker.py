# SPDX-License-Identifier: Apache-2.0
"""The kinds of changes of an elastic job's hosts, for State.on_hosts_updated()."""

import enum

from horovod.common.elastic import HOSTS_ADDED, HOSTS_REMOVED


class HostUpdateResult(enum.IntFlag):
    """How the hosts of an elastic job have changed."""

    no_update = 0
    removed = HOSTS_REMOVED
    added = HOSTS_ADDED
    mixed = HOSTS_REMOVED | HOSTS_ADDED
