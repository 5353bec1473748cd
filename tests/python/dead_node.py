# SPDX-License-Identifier: Apache-2.0
"""Cuts the link between a client and a server while each waits for a message from the other.
run_test.py runs this in a new network namespace.

Each side prints a line when its wait ends with an error. The exit status is 77 if no link can be
created.
"""

import subprocess
import sys

from horovod.runner import keyed_server

HOST = '10.99.0.2'
keyed_server._DEAD_AFTER = 4


def ip(words):
    subprocess.run(['ip', *words.split()], check=True)


def wait_for_a_word(connection):
    try:
        connection.recv()
    except OSError:  # a timeout, or "no route to host" if data was being sent
        print('noticed', flush=True)


def serve():
    """Runs the server on the other node. Each line of input starts the next step."""
    print('here', flush=True)
    input()
    ip(f'addr add {HOST}/24 dev far')
    ip('link set far up')
    with keyed_server.KeyedServer(HOST, wait_for_a_word) as server:
        print(server.port, server.key.hex(), flush=True)
        input()
        ip('link set far down')
        input()


def main():
    with subprocess.Popen(['unshare', '--net', sys.executable, __file__, 'serve'], text=True,
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE) as node:
        node.stdout.readline()
        try:
            ip(f'link add near type veth peer name far netns {node.pid}')
        except (OSError, subprocess.CalledProcessError) as error:
            node.kill()
            print(error)
            sys.exit(77)
        ip('addr add 10.99.0.1/24 dev near')
        ip('link set near up')
        print('up', file=node.stdin, flush=True)
        port, key = node.stdout.readline().split()
        with keyed_server.connect((HOST, int(port)), bytes.fromhex(key)) as connection:
            print('down', file=node.stdin, flush=True)
            wait_for_a_word(connection)
            print(node.stdout.readline().strip())
        node.kill()


if __name__ == '__main__':
    serve() if sys.argv[1:] else main()
