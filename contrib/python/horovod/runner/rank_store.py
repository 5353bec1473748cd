# SPDX-License-Identifier: Apache-2.0
"""A store for ``hvd.init(store=...)``: a server in one process, and clients in the ranks. Only
clients with the server's key can read or write it.

Each request is a connection of its own: client ──> (action, key, argument), server ──> answer.
"""

import threading

from horovod.runner.keyed_server import KeyedServer, connect


class StoreServer:
    """Keeps the values, from ``start`` to ``stop``."""

    def __init__(self, host=''):
        """Listens at the address ``host``; '' stands for all addresses of this node."""
        self._values = {}
        self._changed = threading.Condition()
        self._server = KeyedServer(host, self._talk)
        self.port = self._server.port
        self.key = self._server.key
        self.start = self._server.start
        self.stop = self._server.stop

    def _talk(self, channel):
        action, key, argument = channel.recv()
        channel.send(self._answer(action, key, argument))

    def _answer(self, action, key, argument):
        with self._changed:
            if action == 'wait':
                return self._changed.wait_for(lambda: key in self._values, argument)
            if action == 'get':
                return self._values.get(key)
            value = argument
            if action == 'add':
                value = str(int(self._values.get(key, b'0')) + argument).encode()
            self._values[key] = value
            self._changed.notify_all()
            return value


class RankStore:
    """The store in a rank, with the methods of torch.distributed's stores that hvd needs. It has no
    ``check``, so that a rank waits in the server instead of asking again and again."""

    def __init__(self, place, key):
        """Keeps the address, a pair (host, port), and the key of the StoreServer."""
        self._place = place
        self._key = key

    def _ask(self, action, key, argument=None):
        with connect(self._place, self._key) as channel:
            channel.send((action, key, argument))
            return channel.recv()

    def set(self, key, value):
        self._ask('set', key, bytes(value))

    def get(self, key):
        """Returns the value of a key that the store has."""
        value = self._ask('get', key)
        if value is None:
            raise KeyError(key)
        return value

    def add(self, key, number):
        """Adds to a counter, which begins at 0; returns its new value."""
        return int(self._ask('add', key, number))

    def wait(self, keys, timeout):
        """Waits until the store has all keys. RuntimeError after the timeout, a timedelta, for each
        key."""
        for key in keys:
            if not self._ask('wait', key, timeout.total_seconds()):
                raise RuntimeError(f'timed out: the store has no {key} yet')
