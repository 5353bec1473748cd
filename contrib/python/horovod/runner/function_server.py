# SPDX-License-Identifier: Apache-2.0
"""The process that called ``horovod.run``: gives the function to the ranks, collects results.

Each rank opens a connection and proves with a random key, which it has from the environment, that
it belongs to the job. Then:

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
    import cloudpickle as pickle  # also functions of __main__, and lambdas
except ImportError:
    import pickle

ADDRESS = 'HVD_RUN_ADDRESS'
KEY = 'HVD_RUN_KEY'


class FunctionServer:
    """A context in which ranks fetch the function. Afterwards ``results`` returns what they sent
    back."""

    def __init__(self, function, hosts, interfaces=None):
        """hosts: the user's choice of hosts. None: the ranks are on this machine, unless there is a
        Slurm allocation. interfaces: the user's choice, instead of HVD_IFACE."""
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
        """Talks with one rank. If the rank dies, hvdrun reports it."""
        rank, size = connection.recv()
        connection.send(self._work)
        self._answers[rank] = connection.recv()
        self._size = size

    def results(self, status):
        """The list of results by rank. RuntimeError if a rank failed or hvdrun's exit code is not
        0."""
        for rank, (kind, text) in self._answers.items():  # in the order in which they came
            if kind == 'failure':
                raise RuntimeError(
                    'Horovod detected that one or more processes exited with non-zero status, '
                    'thus causing the job to be terminated. The first process to do so was:\n'
                    f'Process name: {rank}\nExit code: {status}\n{text}')
        if status != 0:
            raise RuntimeError(f'hvdrun ended with exit code {status}: see what it printed')
        missing = sorted(set(range(self._size)) - set(self._answers))
        if missing or not self._answers:
            raise RuntimeError(f'no result came from rank {(missing or ["0"])[0]}: it ended '
                               'before the function did')
        return [pickle.loads(self._answers[rank][1]) for rank in sorted(self._answers)]
