# SPDX-License-Identifier: Apache-2.0
"""Plays a stranger who knows UCX's wire-up: connects to the ports on which a process listens, says
UCX's magic number and then random bytes.

usage: flood.py PID CONNECTIONS SOURCE [SEED]

SOURCE is the address from which it connects, one of this host. Prints how many connections were
accepted, and whether the process still lives."""

import os
import random
import re
import select
import socket
import struct
import sys
import time

MAGIC = struct.pack('<Q', 0xcafebabe12345678)
ACCEPT_S = 1 # what is let in is let in at once


def sockets_of(pid):
    links = (os.path.join(f'/proc/{pid}/fd', name) for name in os.listdir(f'/proc/{pid}/fd'))
    found = (re.fullmatch(r'socket:\[(\d+)\]', os.readlink(link)) for link in links)
    return {match[1] for match in found if match}


def listening(pid):
    """The addresses and ports of a process, IPv4."""
    own = sockets_of(pid)
    with open(f'/proc/{pid}/net/tcp', encoding='ascii') as table:
        for line in list(table)[1:]:
            local, state, inode = (line.split()[i] for i in (1, 3, 9))
            if state == '0A' and inode in own:
                address, port = local.split(':')
                yield socket.inet_ntoa(struct.pack('=I', int(address, 16))), int(port, 16)


def is_alive(pid):
    try:
        with open(f'/proc/{pid}/stat', encoding='ascii') as stat:
            return stat.read().rpartition(')')[2].split()[0] not in 'ZX'
    except OSError:
        return False


def knock(door, source):
    """A socket that is being connected."""
    peer = socket.socket()
    peer.setblocking(False)
    peer.bind((source, 0))
    peer.connect_ex(door)
    return peer


def is_in(peer):
    """Whether it was let in; if so, says the magic number and something that UCX does not expect."""
    return peer in select.select([], [peer], [], 0)[1] and \
        peer.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == 0


def attack(peer, rng):
    try:
        peer.send(MAGIC + rng.randbytes(rng.randrange(1, 400)))
    except OSError:
        pass # it has been closed


def main():
    pid, count, source = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    seed = int(sys.argv[4]) if len(sys.argv) > 4 else random.randrange(1 << 32)
    rng = random.Random(seed)
    doors = sorted(set(listening(pid)))
    print(f'seed {seed}, {len(doors)} ports')
    peers = [knock(doors[i % len(doors)], source) for i in range(count if doors else 0)]
    time.sleep(ACCEPT_S)
    accepted = [peer for peer in peers if is_in(peer)]
    for peer in accepted:
        attack(peer, rng)
    time.sleep(1)
    print(f'{len(accepted)} of {len(peers)} accepted, {"alive" if is_alive(pid) else "dead"}')


main()
