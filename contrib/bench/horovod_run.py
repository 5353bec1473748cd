# SPDX-License-Identifier: Apache-2.0
"""Starts the ranks of a Horovod job on this machine, with Horovod's own Python and Gloo:

    $(contrib/bench/horovod_env.sh) horovod_run.py LAYOUT COMMAND...

LAYOUT "2,2" tells Horovod of two nodes with two ranks each, as on_nodes.sh does
for hvd. (horovodrun itself reaches other nodes with ssh only.) Gloo connects over the loopback
interface, unless HOROVOD_GLOO_IFACE names another. The first rank that fails ends the job.
"""

import os
import subprocess
import sys
import time

from horovod.runner.common.util.hosts import get_host_assignments, parse_hosts
from horovod.runner.gloo_run import create_slot_env_vars
from horovod.runner.http.http_server import RendezvousServer


def start_rank(slot, port, command):
    interface = os.environ.get('HOROVOD_GLOO_IFACE', 'lo')
    env = dict(os.environ, **create_slot_env_vars(slot), HOROVOD_CONTROLLER='gloo',
               HOROVOD_CPU_OPERATIONS='gloo', HOROVOD_GLOO_IFACE=interface,
               HOROVOD_GLOO_RENDEZVOUS_ADDR='127.0.0.1',
               HOROVOD_GLOO_RENDEZVOUS_PORT=str(port))
    return subprocess.Popen(command, env=env)


def wait(ranks):
    """The exit status of the job: 0, or that of the first rank seen to fail."""
    while True:
        ended = [rank.poll() for rank in ranks]
        failed = [status for status in ended if status]
        if failed or None not in ended:
            return failed[0] if failed else 0
        time.sleep(0.05)


def main():
    layout, command = sys.argv[1].split(','), sys.argv[2:]
    hosts = parse_hosts(','.join(f'node{node}:{ranks}' for node, ranks in enumerate(layout)))
    count = sum(map(int, layout))
    slots = get_host_assignments(hosts, count, count)
    server = RendezvousServer()
    port = server.start()
    server.init(slots)
    ranks = []
    try:
        ranks += [start_rank(slot, port, command) for slot in slots]
        return wait(ranks)
    finally:
        for rank in ranks:
            rank.kill()
        server.stop()


if __name__ == '__main__':
    sys.exit(main())
