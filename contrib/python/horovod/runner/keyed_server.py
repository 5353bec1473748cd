# SPDX-License-Identifier: Apache-2.0
"""A TCP server for clients that have its key, and connect() for the clients. One thread performs
the handshakes of all connections, without waiting for any of them. A connection that passes the
handshake gets a thread of its own."""

import contextlib
import errno
import random
import secrets
import selectors
import socket
import threading
import time

from horovod.runner import interfaces, keyed_channel

_PATIENCE = 30  # seconds that stop() waits for all clients to leave
_PROOF_SECONDS = 5  # the time limit of a handshake
_MOST_STRANGERS = 128  # the most connections in the handshake at a time
_ACCEPTED_AT_ONCE = 16  # connections to accept before serving the handshakes again
_PAUSE = 0.1  # seconds before accepting again if this process has run out of descriptors
_ATTEMPTS = 7  # of a client to connect, 0.05 to 1.6 seconds apart
_DEAD_AFTER = 20  # a node counts as dead if its kernel does not answer for so many seconds
_PROBES = 4  # keepalive probes within _DEAD_AFTER seconds


def _notice_a_dead_node(connection):
    """Makes reads from the TCP socket fail with OSError if the other node has died. A peer that
    only sends nothing stays connected, because the kernel of its node answers the probes."""
    for option in (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL):
        connection.setsockopt(socket.IPPROTO_TCP, option, _DEAD_AFTER // _PROBES)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, _PROBES - 1)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, _DEAD_AFTER * 1000)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, True)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, True)


def _cut(stream):
    """Shuts the socket down, so that a thread that reads from it sees the end."""
    with contextlib.suppress(OSError):  # it may have been closed meanwhile
        stream.shutdown(socket.SHUT_RDWR)


@contextlib.contextmanager
def _no_longer_than(seconds, act):
    """A context manager that calls ``act`` after ``seconds``, unless the block has ended by then.
    It limits the total time: a limit for each read would not stop a peer that sends byte by
    byte."""
    timer = threading.Timer(seconds, act)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _join(place, key):
    stream = socket.create_connection(place, _DEAD_AFTER)
    is_late = threading.Event()

    def give_up():
        is_late.set()
        _cut(stream)

    try:
        stream.settimeout(None)
        _notice_a_dead_node(stream)
        with _no_longer_than(_DEAD_AFTER, give_up):
            return keyed_channel.join(stream, key)
    except BaseException as error:
        stream.close()
        if is_late.is_set():
            raise TimeoutError(f'no answer within {_DEAD_AFTER} s') from error
        raise


def connect(place, key):
    """Connects to the KeyedServer at ``place``, a pair (host, port); returns a Channel. OSError or
    EOFError if there is no server with this key; the Channel raises them when the server or its
    node dies. Retries if the server closes the connection during the handshake, as a server does
    that has too many connections."""
    for attempt in range(_ATTEMPTS):
        try:
            return _join(place, key)
        except (EOFError, ConnectionResetError, BrokenPipeError):
            if attempt == _ATTEMPTS - 1:
                raise
            time.sleep(0.05 * 2**attempt * random.uniform(0.5, 1))
    raise AssertionError('unreachable')


class _Stranger:
    """A connection whose handshake is not complete."""

    def __init__(self, stream, key):
        self.stream = stream
        self.admission = keyed_channel.Admission(key)
        self.deadline = time.monotonic() + _PROOF_SECONDS

    def hear(self):
        """Reads available bytes and answers. EOFError or OSError if the connection ends."""
        data = self.stream.recv(self.admission.missing)
        if not data:
            raise EOFError
        answer = self.admission.take(data)
        if self.stream.send(answer) != len(answer):
            raise OSError('the other side does not read')


def _listen(host):
    """Returns a listening socket on a port that interfaces.on_chosen_port allows."""
    return interfaces.on_chosen_port(lambda port: socket.create_server((host, port), backlog=1024))


class _Door:
    """The thread that accepts connections and performs the handshakes, between ``start`` and
    ``stop``. It calls ``welcome(channel, socket)`` for each connection that passes."""

    def __init__(self, host, key, welcome):
        self._key = key
        self._welcome = welcome
        self._listener = _listen(host)
        self._listener.setblocking(False)
        self.port = self._listener.getsockname()[1]
        self._strangers = {}  # {socket: _Stranger}, oldest first
        self._selector = selectors.DefaultSelector()
        self._opens_at = 0  # when to accept again after running out of descriptors; 0: accepting
        self._wakes, self._woken = socket.socketpair()
        self._selector.register(self._woken, selectors.EVENT_READ)
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self.start = self._thread.start

    def stop(self):
        """Stops accepting connections and ends the thread."""
        if self._thread.is_alive():
            self._wakes.send(b'.')
            self._thread.join()

    def _serve(self):
        with contextlib.ExitStack() as stack:
            for each in (self._wakes, self._woken, self._listener, self._selector):
                stack.callback(each.close)
            self._selector.register(self._listener, selectors.EVENT_READ)
            while True:
                ready = [key.fileobj for key, _ in self._selector.select(self._wait())]
                if self._woken in ready:
                    break
                self._hear(ready)
                self._expire()
                if self._listener in ready:
                    self._accept()
            for stream in list(self._strangers):
                self._close(stream)

    def _wait(self):
        """Returns the seconds until the next deadline; None if there is none."""
        times = [stranger.deadline for stranger in self._strangers.values()][:1]
        times += [self._opens_at] if self._opens_at else []
        return max(0, min(times) - time.monotonic()) if times else None

    def _hear(self, ready):
        for stream in ready:
            stranger = self._strangers.get(stream)
            if not stranger:
                continue
            try:
                stranger.hear()
            except (BlockingIOError, InterruptedError):
                continue
            except (EOFError, OSError):
                self._close(stream)
                continue
            if stranger.admission.is_done:
                self._forget(stream)
                stream.setblocking(True)
                self._welcome(stranger.admission.channel(stream), stream)

    def _expire(self):
        now = time.monotonic()
        for stream, stranger in list(self._strangers.items()):
            if stranger.deadline > now:
                break
            self._close(stream)
        if self._opens_at and self._opens_at <= now:
            self._opens_at = 0
            self._selector.register(self._listener, selectors.EVENT_READ)

    def _accept(self):
        for _ in range(_ACCEPTED_AT_ONCE):
            try:
                stream = self._listener.accept()[0]
            except OSError as error:
                if error.errno in (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM):
                    self._find_room()
                return
            try:
                stream.setblocking(False)
                _notice_a_dead_node(stream)
            except OSError:  # the client has disconnected already
                stream.close()
                continue
            if len(self._strangers) >= _MOST_STRANGERS:
                self._close_one()
            self._strangers[stream] = _Stranger(stream, self._key)
            self._selector.register(stream, selectors.EVENT_READ)

    def _find_room(self):
        """Frees a descriptor when the process has run out: closes a connection in the handshake. If
        there is none, stops accepting for a moment, until clients have closed theirs."""
        if self._strangers:
            self._close_one()
            return
        self._selector.unregister(self._listener)
        self._opens_at = time.monotonic() + _PAUSE

    def _close_one(self):
        """Closes a connection in the handshake: the oldest one whose client has not sent a valid
        hello, or the oldest one of all if every client has sent it."""
        silent = (stream for stream, stranger in self._strangers.items()
                  if not stranger.admission.has_said_hello)
        self._close(next(silent, next(iter(self._strangers))))

    def _forget(self, stream):
        self._selector.unregister(stream)
        del self._strangers[stream]

    def _close(self, stream):
        self._forget(stream)
        stream.close()


class KeyedServer:
    """A server that runs from ``start`` to ``stop``, or as a context manager. Clients need its
    ``key`` and ``port`` for connect()."""

    def __init__(self, host, talk):
        """host: the address to listen at; '' for all. talk: a function that is called with each
        Channel, in a thread of its own; EOFError and OSError that it raises are ignored."""
        self._talk = talk
        self._clients = {}  # {thread: socket of its client}
        self.key = secrets.token_bytes(32)
        self._door = _Door(host, self.key, self._welcome)
        self.port = self._door.port
        self.start = self._door.start

    def _welcome(self, channel, stream):
        thread = threading.Thread(target=self._attend, args=(channel,))
        self._clients[thread] = stream
        try:
            thread.start()
        except RuntimeError:  # no thread could be started: disconnect the client
            del self._clients[thread]
            channel.close()

    def _attend(self, channel):
        try:
            with channel, contextlib.suppress(EOFError, OSError):  # the client has died
                self._talk(channel)
        finally:
            del self._clients[threading.current_thread()]

    def stop(self):
        """Stops accepting connections and waits until all clients have left. Disconnects those that
        have not left after 30 seconds."""
        self._door.stop()
        with _no_longer_than(_PATIENCE, self._cut_all):
            for thread in list(self._clients):
                thread.join()

    def _cut_all(self):
        for stream in list(self._clients.values()):
            _cut(stream)

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *failure):
        self.stop()
