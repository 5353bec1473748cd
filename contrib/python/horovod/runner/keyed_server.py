# SPDX-License-Identifier: Apache-2.0
"""A TCP server for those who have its key: nothing is unpickled before the other side has proved
that it has it."""

import os
import secrets
import socket
import socketserver
import struct
import threading
from multiprocessing import AuthenticationError
from multiprocessing.connection import Connection, answer_challenge, deliver_challenge

_PATIENCE = 30  # seconds for a stranger to prove that it is none


class _Handler(socketserver.BaseRequestHandler):
    """One connection, in a thread of its own."""

    def handle(self):
        with Connection(os.dup(self.request.fileno())) as connection:
            try:
                self._limit(_PATIENCE)
                deliver_challenge(connection, self.server.key)
                answer_challenge(connection, self.server.key)
                self._limit(0)  # the other side may take its time
                self.server.talk(connection)
            except (AuthenticationError, EOFError, OSError):
                pass  # a stranger, or somebody who died

    def _limit(self, seconds):
        """How long a read waits for the other side; 0: for ever."""
        self.request.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO,
                                struct.pack('ll', seconds, 0))


class _Server(socketserver.ThreadingTCPServer):
    request_queue_size = 1024
    daemon_threads = False  # server_close() waits for them
    block_on_close = True


class KeyedServer:
    """Serves from ``start`` to ``stop``, or as a context; ``key`` and ``port`` are for the others,
    who call multiprocessing.connection.Client."""

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
        """Lets nobody in any more, and waits until all who were in have left."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *failure):
        self.stop()
