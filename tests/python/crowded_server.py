# SPDX-License-Identifier: Apache-2.0
"""A KeyedServer in a process with few file descriptors, for keyed_server_test.py. It tells its
clients how many threads and descriptors are in use. Prints its port and key; ends when its input
ends."""

import os
import resource
import sys
import threading

from horovod.runner import keyed_server


def count(channel):
    if channel.recv() == 'count':
        channel.send((threading.active_count(), len(os.listdir('/proc/self/fd'))))


def main():
    limit = int(sys.argv[1])
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
    with keyed_server.KeyedServer('127.0.0.1', count) as server:
        print(server.port, server.key.hex(), flush=True)
        sys.stdin.read()


if __name__ == '__main__':
    main()
