# SPDX-License-Identifier: Apache-2.0
"""The registry of a tf.data service, in rank 0 of the job that provides it. Dispatchers and workers
register there, and trainings find them there. Each request uses a new connection:

    client     ──>  (name of the request, arguments)
    registry   ──>  the result, or the exception to raise
"""

import functools
import socket
import threading

from horovod.runner.interfaces import chosen_address
from horovod.runner.keyed_server import KeyedServer, connect

_REQUESTS = ('register_dispatcher', 'wait_for_dispatcher_registration',
             'register_worker_for_dispatcher', 'wait_for_dispatcher_worker_registration',
             'shutdown', 'wait_for_shutdown')


def own_host():
    """Returns the address of the interface that the user chose with HVD_IFACE; otherwise this
    host's name, or the loopback address if the name has no IPv4 address."""
    name = chosen_address() or socket.gethostname()
    try:
        socket.getaddrinfo(name, None, socket.AF_INET)  # the registry listens on IPv4 only
        return name
    except OSError:
        return '127.0.0.1'


class ServiceIsOver(RuntimeError):
    """The service has been shut down."""


class Registry:
    """The table of dispatchers and their workers, and whether the service has been shut down.
    ``addresses`` and ``key`` are the arguments of RegistryClient."""

    def __init__(self, dispatchers, workers_per_dispatcher):
        self._dispatchers = [None] * dispatchers
        self._workers = [set() for _ in range(dispatchers)]
        self._enough = workers_per_dispatcher
        self._is_over = False
        self._changed = threading.Condition()
        self._server = KeyedServer(chosen_address(), self._talk)
        self.key = self._server.key
        host = own_host()
        self.addresses = {host: [(host, self._server.port)]}
        self._server.start()

    def close(self):
        """Ends the service. Returns when all pending requests are answered."""
        self.shutdown()
        self._server.stop()

    def register_dispatcher(self, dispatcher_id, dispatcher_address):
        """Registers a dispatcher under an address "protocol://host:port". This and the following
        methods raise ValueError if dispatcher_id is not less than the number of dispatchers."""
        self._check(dispatcher_id)
        with self._changed:
            self._dispatchers[dispatcher_id] = dispatcher_address
            self._changed.notify_all()

    def wait_for_dispatcher_registration(self, dispatcher_id, timeout):
        """Waits for the dispatcher and returns its address. TimeoutError after ``timeout`` seconds;
        ServiceIsOver if the service is shut down."""
        self._check(dispatcher_id)
        self._wait(lambda: self._dispatchers[dispatcher_id], timeout,
                   lambda: f'dispatcher {dispatcher_id}')
        return self._dispatchers[dispatcher_id]

    def register_worker_for_dispatcher(self, dispatcher_id, worker_id):
        self._check(dispatcher_id)
        with self._changed:
            self._workers[dispatcher_id].add(worker_id)
            self._changed.notify_all()

    def wait_for_dispatcher_worker_registration(self, dispatcher_id, timeout):
        """Waits until all workers of the dispatcher have registered. TimeoutError after ``timeout``
        seconds; ServiceIsOver if the service is shut down."""
        self._check(dispatcher_id)
        workers = self._workers[dispatcher_id]
        self._wait(lambda: len(workers) >= self._enough, timeout,
                   lambda: f'{self._enough} workers of dispatcher {dispatcher_id}, of which '
                           f'{len(workers)} came')

    def shutdown(self):
        with self._changed:
            self._is_over = True
            self._changed.notify_all()

    def wait_for_shutdown(self):
        with self._changed:
            self._changed.wait_for(lambda: self._is_over)

    def _check(self, dispatcher_id):
        number = len(self._dispatchers)
        if not 0 <= dispatcher_id < number:
            raise ValueError(
                f'there is no dispatcher {dispatcher_id}: the tf.data service has {number}, '
                'counted from 0. --dispatchers of the job that provides it must be 1, or the '
                'number of ranks that train')

    def _wait(self, is_there, timeout, what):
        with self._changed:
            if not self._changed.wait_for(lambda: self._is_over or is_there(), timeout):
                raise TimeoutError(f'the tf.data service waited {timeout} s for {what()}: see the '
                                   'output of the job that provides it')
            if self._is_over:
                raise ServiceIsOver('the tf.data service has been shut down')

    def _talk(self, connection):
        name, arguments = connection.recv()
        try:
            if name not in _REQUESTS:
                raise ValueError(f'the registry knows no request {name}')
            answer = getattr(self, name)(*arguments)
        except Exception as error:  # pylint: disable=broad-except # the client raises it
            answer = error
        connection.send(answer)


class RegistryClient:
    """Calls the methods of a Registry in another process. ConnectionError if the registry cannot be
    reached."""

    def __init__(self, addresses, key):
        self._places = [tuple(place) for places in addresses.values() for place in places]
        self._key = key

    def __getattr__(self, name):
        if name not in _REQUESTS:
            raise AttributeError(f'the registry of a tf.data service has no {name}')
        return functools.partial(self._ask, name)

    def _ask(self, name, *arguments):
        connection, place = self._connect()
        with connection:
            try:
                connection.send((name, arguments))
                answer = connection.recv()
            except (EOFError, OSError) as error:
                raise _absent(place, error) from error
        if isinstance(answer, Exception):
            raise answer
        return answer

    def _connect(self):
        """Connects to the first place that answers. Returns the connection and the place."""
        failure = ConnectionError('the registry of a tf.data service has no address')
        for place in self._places:
            try:
                return connect(place, self._key), place
            except (EOFError, OSError) as error:
                failure = _absent(place, error)
        raise failure


def _absent(place, error):
    """Returns the error to raise if the registry cannot be reached."""
    cause = getattr(error, 'strerror', None) or str(error) or 'it closed the connection'
    return ConnectionError(f'cannot reach the tf.data service at {place[0]}:{place[1]} '
                           f'({cause}): does the job that provides it, '
                           'horovod.tensorflow.data.compute_worker, still run?')
