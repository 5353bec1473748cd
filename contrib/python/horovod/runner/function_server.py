# SPDX-License-Identifier: Apache-2.0
"""The process that called ``horovod.run``: gives the function to the ranks, collects results.

Each rank opens a connection and proves with a random key, which it has from the environment, that
it belongs to the job; nothing is unpickled before. Then:

    rank       ──>  its number and the number of ranks
    server     ──>  (sys.path, pickled function)
    rank       ──>  ('result', pickled) or ('failure', text)
"""

import os
import secrets
import socket
import socketserver
import struct
import sys
import threading
from multiprocessing import AuthenticationError
from multiprocessing.connection import Connection, answer_challenge, deliver_challenge

try:
    import cloudpickle as pickle  # also functions of __main__, and lambdas
except ImportError:
    import pickle

ADDRESS = 'HVD_RUN_ADDRESS'
KEY = 'HVD_RUN_KEY'
_PATIENCE = 30  # seconds for a stranger to prove that it is none


class _Handler(socketserver.BaseRequestHandler):
    """One connection, in a thread of its own."""

    def handle(self):
        with Connection(os.dup(self.request.fileno())) as connection:
            try:
                self._limit(_PATIENCE)
                deliver_challenge(connection, self.server.key)
                answer_challenge(connection, self.server.key)
                self._limit(0)  # the function may take its time
                rank, size = connection.recv()
                connection.send(self.server.work)
                self.server.answers[rank] = connection.recv()
                self.server.size = size
            except (AuthenticationError, EOFError, OSError):
                pass  # a stranger, or a rank that died: hvdrun tells

    def _limit(self, seconds):
        """How long a read waits for the other side; 0: for ever."""
        self.request.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO,
                                struct.pack('ll', seconds, 0))


class _Server(socketserver.ThreadingTCPServer):
    request_queue_size = 1024
    daemon_threads = False  # server_close() waits for them
    block_on_close = True


class FunctionServer:
    """A context in which ranks get the function; afterwards ``results`` has what came back."""

    def __init__(self, function, hosts):
        """hosts: what the user said of them; None: ranks are on this machine, unless there is a
        Slurm allocation."""
        is_alone = hosts is None and 'SLURM_JOB_ID' not in os.environ
        work = (sys.path, pickle.dumps(function))
        self._server = _Server(('127.0.0.1' if is_alone else '', 0), _Handler)
        self._server.key = secrets.token_bytes(32)
        self._server.work = work
        self._server.answers = {}
        self._server.size = 0
        host = '127.0.0.1' if is_alone else socket.gethostname()
        self.environment = {ADDRESS: f'{host}:{self._server.server_address[1]}',
                            KEY: self._server.key.hex()}
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *failure):
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def results(self, status):
        """The list by rank; RuntimeError if a rank failed or hvdrun has another exit code than
        0."""
        answers = self._server.answers
        for rank, (kind, text) in answers.items():  # in the order in which they came
            if kind == 'failure':
                raise RuntimeError(
                    'Horovod detected that one or more processes exited with non-zero status, '
                    'thus causing the job to be terminated. The first process to do so was:\n'
                    f'Process name: {rank}\nExit code: {status}\n{text}')
        if status != 0:
            raise RuntimeError(f'hvdrun ended with exit code {status}: see what it printed')
        missing = sorted(set(range(self._server.size)) - set(answers))
        if missing or not answers:
            raise RuntimeError(f'no result came from rank {(missing or ["0"])[0]}: it ended '
                               'before the function did')
        return [pickle.loads(answers[rank][1]) for rank in sorted(answers)]
