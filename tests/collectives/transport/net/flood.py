# SPDX-License-Identifier: Apache-2.0
"""Plays strangers that connect to the ports on which a process listens. A third of them send nothing, a
third send UCX's magic number and then random bytes, and a third send only random bytes.

usage: flood.py PID CONNECTIONS [SEED]

Prints how many connections the process has ended, and whether it is still alive."""

import os
import random
import re
import socket
import struct
import sys
import time

MAGIC = struct.pack('<Q', 0xcafebabe12345678)
END_S = 60 # a stranger that proves nothing is disconnected after 5 s, later on a slow machine
LISTENS = '0A'


def sockets_of(pid):
    links = (os.path.join(f'/proc/{pid}/fd', name) for name in os.listdir(f'/proc/{pid}/fd'))
    found = (re.fullmatch(r'socket:\[(\d+)\]', os.readlink(link)) for link in links)
    return {match[1] for match in found if match}


def listening(pid):
    """Yields the ports on which a process listens."""
    own = sockets_of(pid)
    for table in 'tcp', 'tcp6':
        with open(f'/proc/{pid}/net/{table}', encoding='ascii') as lines:
            for line in list(lines)[1:]:
                local, state, inode = (line.split()[i] for i in (1, 3, 9))
                if state == LISTENS and inode in own:
                    yield int(local.rpartition(':')[2], 16)


def is_alive(pid):
    try:
        with open(f'/proc/{pid}/stat', encoding='ascii') as stat:
            return stat.read().rpartition(')')[2].split()[0] not in 'ZX'
    except OSError:
        return False


def attack(port, number, rng):
    """Opens a connection and sends what its number decides: nothing, or bytes of one of two kinds."""
    peer = socket.create_connection(('127.0.0.1', port))
    peer.setblocking(False)
    noise = rng.randbytes(rng.randrange(1, 400))
    if number % 3:
        try:
            peer.send((MAGIC if number % 3 == 1 else b'') + noise)
        except OSError:
            pass # the process has closed the connection
    return peer


def is_ended(peer):
    """Returns whether the other end has closed the connection."""
    try:
        return peer.recv(4096) == b''
    except BlockingIOError:
        return False
    except OSError:
        return True


def main():
    pid, count = int(sys.argv[1]), int(sys.argv[2])
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else random.randrange(1 << 32)
    rng = random.Random(seed)
    ports = sorted(set(listening(pid)))
    print(f'seed {seed}, {len(ports)} ports')
    waiting = [attack(ports[i % len(ports)], i, rng) for i in range(count if ports else 0)]
    started = len(waiting)
    deadline = time.monotonic() + END_S
    while waiting and time.monotonic() < deadline:
        waiting = [peer for peer in waiting if not is_ended(peer)]
        time.sleep(0.05)
    print(f'{started - len(waiting)} of {started} ended, {"alive" if is_alive(pid) else "dead"}')


main()
