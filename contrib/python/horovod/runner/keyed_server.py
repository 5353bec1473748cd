# SPDX-License-Identifier: Apache-2.0
"""A TCP server for those who have its key, and how they connect to it: nothing is unpickled before
the other side has proved that it has the key."""

import contextlib
import os
import secrets
import socket
import socketserver
import threading
from multiprocessing import AuthenticationError
from multiprocessing.connection import Connection, answer_challenge, deliver_challenge

_PATIENCE = 30  # seconds for a stranger to prove that it is none, and for all to leave at the end
_DEAD_AFTER = 20  # seconds without a sign from the kernel of the other node
_PROBES = 4


def _notice_a_dead_node(connection):
    """Reading from the TCP socket then fails with OSError. A node that merely says nothing stays
    connected: its kernel answers."""
    for option in (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL):
        connection.setsockopt(socket.IPPROTO_TCP, option, _DEAD_AFTER // _PROBES)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, _PROBES - 1)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, _DEAD_AFTER * 1000)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, True)


def connect(place, key):
    """A multiprocessing Connection to the KeyedServer at place, a pair (host, port). OSError,
    EOFError or AuthenticationError if there is none; OSError or EOFError later when it ends, or
    its node."""
    with socket.create_connection(place, _DEAD_AFTER) as stream:
        stream.settimeout(None)
        _notice_a_dead_node(stream)
        connection = Connection(os.dup(stream.fileno()))
    try:
        answer_challenge(connection, key)
        deliver_challenge(connection, key)
    except BaseException:
        connection.close()
        raise
    return connection


@contextlib.contextmanager
def _no_longer_than(seconds, connections):
    """Cuts those of the sockets that are then open, which whoever reads from one sees as its
    end. A limit in all, unlike one for each read, which who sends byte by byte would outlast."""
    def cut():
        for connection in list(connections):
            with contextlib.suppress(OSError):  # was closed meanwhile
                connection.shutdown(socket.SHUT_RDWR)

    timer = threading.Timer(seconds, cut)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


class _Handler(socketserver.BaseRequestHandler):
    """One connection, in a thread of its own."""

    def handle(self):
        with Connection(os.dup(self.request.fileno())) as connection:
            try:
                _notice_a_dead_node(self.request)
                with _no_longer_than(_PATIENCE, [self.request]):
                    deliver_challenge(connection, self.server.key)
                    answer_challenge(connection, self.server.key)
                self.server.talk(connection)  # the other side may take its time
            except (AuthenticationError, EOFError, OSError):
                pass  # a stranger, or somebody who died


class _Server(socketserver.ThreadingTCPServer):
    request_queue_size = 1024
    daemon_threads = False  # server_close() waits for them
    block_on_close = True

    def __init__(self, *arguments):
        self.open = set()
        super().__init__(*arguments)

    def process_request(self, request, client_address):
        self.open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request):
        self.open.discard(request)
        super().shutdown_request(request)


class KeyedServer:
    """Serves from ``start`` to ``stop``, or as a context; ``key`` and ``port`` are for the others,
    who call ``connect``."""

    def __init__(self, host, talk):
        """host: the address to listen at, '' for all. talk: called with each connection, in a
        thread of its own; EOFError and OSError end it."""
        self._server = _Server((host, 0), _Handler)
        self._server.talk = talk
        self._server.key = self.key = secrets.token_bytes(32)
        self.port = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    def start(self):
        self._thread.start()

    def stop(self):
        """Lets nobody in any more, and waits until all who were in have left; those who have not
        after half a minute are cut off."""
        self._server.shutdown()
        self._thread.join()
        with _no_longer_than(_PATIENCE, self._server.open):
            self._server.server_close()

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *failure):
        self.stop()
