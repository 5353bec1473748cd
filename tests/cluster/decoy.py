# SPDX-License-Identifier: Apache-2.0
"""A process of a job that is open on purpose, for tests/cluster/attacker.py to find: a file in /dev/shm, a port and
an abstract socket give the text in HVD_TEST_CANARY to every user.

usage: decoy.py FILE     ends when FILE exists"""

import ctypes
import os
import socket
import sys
import threading
import time

PR_SET_PTRACER, PR_SET_PTRACER_ANY = 0x59616d61, -1
FILE = '/dev/shm/decoy'
canary = os.environ['HVD_TEST_CANARY'].encode()


def answer(server, file):
    while True:
        peer, _ = server.accept()
        try:
            if server.family == socket.AF_UNIX:
                socket.send_fds(peer, [canary], [file.fileno()])
            else:
                peer.sendall(canary)
            peer.close()
        except OSError:
            pass # the peer is gone


def main():
    # With Yama, a process must allow others to trace it.
    ctypes.CDLL(None).prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0)
    os.umask(0)
    with open(FILE, 'wb+') as file:
        file.write(canary)
        file.flush()
        for family, address in ((socket.AF_INET, ('127.0.0.1', 0)), (socket.AF_UNIX, '\0decoy')):
            server = socket.socket(family)
            server.bind(address)
            server.listen()
            threading.Thread(target=answer, args=(server, file), daemon=True).start()
        print('decoy: open', flush=True)
        while not os.path.exists(sys.argv[1]):
            time.sleep(0.05)
    os.remove(FILE)


main()
