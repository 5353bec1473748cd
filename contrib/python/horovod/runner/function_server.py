# SPDX-License-Identifier: Apache-2.0
"""The server in the process that called ``horovod.run``: sends the function to the ranks and
collects their results.

Each rank opens a connection and proves that it belongs to the job, with a random key that it gets
in its environment. Then:

    rank       ──>  its number and the number of ranks
    server     ──>  (sys.path, pickled function)
    rank       ──>  ('result', pickled) or ('failure', text)
"""

import os
import socket
import sys

from horovod.runner.interfaces import chosen_address
from horovod.runner.keyed_server import KeyedServer

try:
    import cloudpickle as pickle  # supports lambdas and functions of __main__, too
except ImportError:
    import pickle

ADDRESS = 'HVD_RUN_ADDRESS'
KEY = 'HVD_RUN_KEY'


class FunctionServer:
    """A context manager in which ranks fetch the function. Afterwards ``results`` returns their
    results."""

    def __init__(self, function, hosts, interfaces=None):
        """hosts: the hosts that the user chose; None: the ranks run on this machine, unless it is
        in a Slurm allocation. interfaces: the network interfaces that the user chose; they override
        HVD_IFACE."""
        is_alone = hosts is None and 'SLURM_JOB_ID' not in os.environ
        self._work = (sys.path, pickle.dumps(function))
        self._answers = {}
        self._size = 0
        place = '127.0.0.1' if is_alone else chosen_address(interfaces)
        self._server = KeyedServer(place, self._talk)
        host = place or socket.gethostname()
        self.environment = {ADDRESS: f'{host}:{self._server.port}',
                            KEY: self._server.key.hex()}

    def __enter__(self):
        self._server.start()
        return self

    def __exit__(self, *failure):
        self._server.stop()

    def _talk(self, connection):
        """Serves one rank. A rank that dies makes recv() or send() raise; the server ignores that,
        because hvdrun reports the death."""
        rank, size = connection.recv()
        connection.send(self._work)
        self._answers[rank] = connection.recv()
        self._size = size

    def results(self, status):
        """Returns the list of results in rank order. ``status``: hvdrun's exit code. RuntimeError
        if a rank failed or the exit code is not 0."""
        for rank, (kind, text) in self._answers.items():  # in the order of their arrival
            if kind == 'failure':
                raise RuntimeError(
                    'Horovod detected that one or more processes exited with non-zero status, '
                    'thus causing the job to be terminated. The first process to do so was:\n'
                    f'Process name: {rank}\nExit code: {status}\n{text}')
        if status != 0:
            raise RuntimeError(f'hvdrun ended with exit code {status}: see its output')
        missing = sorted(set(range(self._size)) - set(self._answers))
        if missing or not self._answers:
            raise RuntimeError(f'no result came from rank {(missing or ["0"])[0]}: it ended '
                               'before the function did')
        return [pickle.loads(self._answers[rank][1]) for rank in sorted(self._answers)]
