# SPDX-License-Identifier: Apache-2.0
"""A KeyedServer and its clients reject peers without the key, and such peers cannot block them."""

import contextlib
import multiprocessing.connection
import os
import pickle
import socket
import struct
import subprocess
import sys
import threading
import time
import types
import unittest
import unittest.mock

from horovod.runner import function_server, keyed_channel, keyed_server

HERE = os.path.dirname(os.path.abspath(__file__))
SECONDS = 60  # longer than any wait of these tests
FAILURES = (EOFError, OSError)
FEW = 12  # the most threads: the program, the server, one client, and some clients that are leaving
ran = []


def strike():
    ran.append('code of a stranger')


class Evil:
    """Executes code when it is unpickled."""

    def __reduce__(self):
        return strike, ()


def answer(channel):
    channel.send(('answer', channel.recv()))


def ask(place, key, question='question'):
    with keyed_server.connect(place, key) as channel:
        channel.send(question)
        return channel.recv()


def watched():
    """Returns a list that collects the bytes that keyed_channel unpickles, and the patch that fills
    it."""
    seen = []

    def loads(data):
        seen.append(bytes(data))
        return pickle.loads(data)

    return seen, unittest.mock.patch.object(
        keyed_channel, 'pickle', types.SimpleNamespace(dumps=pickle.dumps, loads=loads))


class Impostor:
    """A server without the key. Calls ``act`` with the sockets of its first clients."""

    def __init__(self, clients, act):
        self._listener = socket.create_server(('127.0.0.1', 0))
        self.place = self._listener.getsockname()
        self._thread = threading.Thread(target=self._serve, args=(clients, act))
        self._thread.start()

    def _serve(self, clients, act):
        with contextlib.ExitStack() as stack:
            with self._listener:
                streams = [stack.enter_context(self._listener.accept()[0])
                           for _ in range(clients)]
            for stream in streams:  # limits how long act() waits for a client
                stream.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack('ll', 1, 0))
            with contextlib.suppress(*FAILURES):
                act(*streams)

    def join(self):
        self._thread.join()


def let_one_answer_for_another(first, second):
    """Lets one client answer the challenge of another: an attack on the handshake of
    multiprocessing, which does not tell client and server apart."""
    with contextlib.ExitStack() as stack:
        first, second = (stack.enter_context(multiprocessing.connection.Connection(
            os.dup(each.fileno()))) for each in (first, second))
        first.send_bytes(b'#CHALLENGE#' + bytes(20))
        if not first.poll(1):
            return
        first.recv_bytes(256)
        first.send_bytes(b'#WELCOME#')
        second.send_bytes(first.recv_bytes(256))
        first.send_bytes(second.recv_bytes(256))
        first.recv_bytes(256)
        first.send(Evil())


class Servers(unittest.TestCase):
    """Servers that a client must reject."""

    def setUp(self):
        patch = unittest.mock.patch.object(keyed_server, '_ATTEMPTS', 1, create=True)
        patch.start()
        self.addCleanup(patch.stop)
        ran.clear()

    def refused(self, clients, act):
        """Checks that all clients fail that connect to an Impostor with this ``act``."""
        impostor = Impostor(clients, act)
        results = []

        def client():
            try:
                results.append(ask(impostor.place, b'k' * 32))
            except Exception as error:
                results.append(error)

        threads = [threading.Thread(target=client) for _ in range(clients)]
        for thread in threads:
            thread.start()
        for thread in threads + [impostor]:
            thread.join()
        self.assertEqual(ran, [])
        for each in results:
            self.assertIsInstance(each, FAILURES)

    def test_the_answer_of_one_client_is_rejected_by_another(self):
        self.refused(2, let_one_answer_for_another)

    def test_a_client_does_not_answer_itself(self):
        def reflect(stream):
            while True:
                stream.sendall(stream.recv(4096))

        self.refused(1, reflect)

    def test_a_client_is_not_answered_by_another(self):
        def cross(first, second):
            while True:
                first.sendall(second.recv(4096))
                second.sendall(first.recv(4096))

        self.refused(2, cross)

    def test_an_object_before_the_handshake_is_not_unpickled(self):
        def send(stream):
            with multiprocessing.connection.Connection(os.dup(stream.fileno())) as connection:
                connection.send(Evil())
            stream.sendall(pickle.dumps(Evil()) * 20)

        self.refused(1, send)

    def test_a_client_leaves_a_server_that_sends_nothing(self):
        with socket.create_server(('127.0.0.1', 0)) as silent:
            with unittest.mock.patch.object(keyed_server, '_DEAD_AFTER', 4):
                with self.assertRaisesRegex(TimeoutError, 'no answer within 4 s'):
                    keyed_server.connect(silent.getsockname(), b'k' * 32)


class Relay:
    """A relay between a client and a server that flips one byte of the data in one direction."""

    def __init__(self, place):
        self._place = place
        self._listener = socket.create_server(('127.0.0.1', 0))
        self.place = self._listener.getsockname()
        self.flips = {}  # {direction: index of the byte to flip}
        self.passed = {}  # {direction: the data that has passed}
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _pass(self, direction, source, sink):
        count = 0
        with contextlib.suppress(OSError):
            while True:
                data = bytearray(source.recv(4096))
                if not data:
                    break
                place = self.flips.get(direction, -1) - count
                if 0 <= place < len(data):
                    data[place] ^= 0x10
                count += len(data)
                self.passed[direction] = self.passed.get(direction, b'') + data
                sink.sendall(data)
        for stream in (source, sink):
            with contextlib.suppress(OSError):
                stream.shutdown(socket.SHUT_RDWR)

    def _serve(self):
        while True:
            client = self._listener.accept()[0]
            if not self._place:
                client.close()
                return
            with client, socket.create_connection(self._place) as server:
                back = threading.Thread(target=self._pass, args=('back', server, client))
                back.start()
                self._pass('forth', client, server)
                back.join()

    def stop(self):
        self._place = None
        socket.create_connection(self.place).close()
        self._thread.join()
        self._listener.close()


class Messages(unittest.TestCase):
    """Messages when an attacker is between the client and the server."""

    def setUp(self):
        patch = unittest.mock.patch.object(keyed_server, '_ATTEMPTS', 1)
        patch.start()
        self.addCleanup(patch.stop)
        self.server = keyed_server.KeyedServer('127.0.0.1', answer)
        self.server.start()
        self.addCleanup(self.server.stop)
        self.relay = Relay(('127.0.0.1', self.server.port))
        self.addCleanup(self.relay.stop)

    def test_each_byte_is_authenticated(self):
        self.assertEqual(ask(self.relay.place, self.server.key), ('answer', 'question'))
        sizes = {direction: len(data) for direction, data in self.relay.passed.items()}
        genuine = {pickle.dumps('question'), pickle.dumps(('answer', 'question'))}
        seen, patch = watched()
        with patch:
            for direction, size in sizes.items():
                for place in range(size):
                    self.relay.flips = {direction: place}
                    with self.assertRaises(FAILURES, msg=f'byte {place} {direction}'):
                        ask(self.relay.place, self.server.key)
        self.assertLessEqual(set(seen), genuine)

    def test_a_replayed_connection_is_rejected(self):
        ask(self.relay.place, self.server.key)
        seen, patch = watched()
        with patch, socket.create_connection(('127.0.0.1', self.server.port)) as stream:
            stream.sendall(self.relay.passed['forth'])
            with contextlib.suppress(ConnectionResetError):
                while stream.recv(4096):
                    pass
        self.assertEqual(seen, [])

    def test_unchanged_messages_arrive_in_both_directions(self):
        large = os.urandom(1 << 20)
        self.assertEqual(ask(self.relay.place, self.server.key, large), ('answer', large))


class Wire:
    """A stand-in for a socket that collects the sent bytes and has bytes to read."""

    def __init__(self):
        self.sent = b''
        self.coming = b''

    def sendall(self, data):
        self.sent += data

    def take(self):
        data, self.sent = self.sent, b''
        return data

    def recv_into(self, view):
        count = min(len(view), len(self.coming))
        view[:count], self.coming = self.coming[:count], self.coming[count:]
        return count


class Order(unittest.TestCase):
    """The order of the messages of one connection."""

    def setUp(self):
        self.wires = [Wire(), Wire()]
        self.client, self.server = (
            keyed_channel.Channel(wire, b'k' * 32, b'n' * 64, is_server)
            for wire, is_server in zip(self.wires, (False, True)))

    def sent(self, sender, wire, *objects):
        """Sends objects; returns the bytes of each message."""
        return [(sender.send(each), wire.take())[1] for each in objects]

    def read(self, *messages):
        """Returns the objects that the server receives from these messages."""
        self.wires[1].coming = b''.join(messages)
        return [self.server.recv() for _ in messages]

    def test_messages_in_order_arrive(self):
        self.assertEqual(self.read(*self.sent(self.client, self.wires[0], 'a', 'b', 'c')),
                         ['a', 'b', 'c'])

    def test_a_message_arrives_once(self):
        [first] = self.sent(self.client, self.wires[0], 'a')
        with self.assertRaises(keyed_channel.Untrusted):
            self.read(first, first)

    def test_a_dropped_message_is_noticed(self):
        with self.assertRaises(keyed_channel.Untrusted):
            self.read(self.sent(self.client, self.wires[0], 'a', 'b')[1])

    def test_a_reflected_message_is_rejected(self):
        with self.assertRaises(keyed_channel.Untrusted):
            self.read(*self.sent(self.server, self.wires[1], 'a'))

    def test_parts_of_two_messages_are_rejected(self):
        first, second = self.sent(self.client, self.wires[0], 'a', 'b')
        with self.assertRaises(keyed_channel.Untrusted):
            self.read(first[:40] + second[40:])

    def test_a_length_without_an_authenticator_allocates_no_memory(self):
        [message] = self.sent(self.client, self.wires[0], 'a')
        with self.assertRaises(keyed_channel.Untrusted):
            self.read(b'\x7f' + message[1:])


HALVES = {'nothing': b'', 'half a hello': b'hvd key1' + bytes(20), 'a wrong hello': b'hvd key1' * 9,
          'another protocol': b'GET / HTTP/1.1\r\n\r\n'}


class Crowd(unittest.TestCase):
    """A server with few descriptors, and many peers without its key."""

    def setUp(self):
        self.process = subprocess.Popen(
            [sys.executable, os.path.join(HERE, 'crowded_server.py'), '256'], text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.addCleanup(self.end)
        port, key = self.process.stdout.readline().split()
        self.place, self.key = ('127.0.0.1', int(port)), bytes.fromhex(key)

    def end(self):
        self.process.communicate()
        self.assertEqual(self.process.returncode, 0)

    @contextlib.contextmanager
    def half_open(self, count, said):
        with contextlib.ExitStack() as stack:
            for _ in range(count):
                stream = stack.enter_context(socket.create_connection(self.place, SECONDS))
                with contextlib.suppress(OSError):  # the server may have closed it for another one
                    stream.sendall(said)
            yield

    def test_a_client_is_served_beside_half_open_connections(self):
        for kind, said in HALVES.items():
            with self.subTest(kind), self.half_open(400, said):
                threads, descriptors = ask(self.place, self.key, 'count')
                self.assertLessEqual(threads, FEW)
                self.assertLessEqual(descriptors, keyed_server._MOST_STRANGERS + 20)

    def test_clients_are_served_while_strangers_come(self):
        over = threading.Event()

        def flood():
            while not over.is_set():
                with contextlib.suppress(OSError), self.half_open(50, b''):
                    pass

        floods = [threading.Thread(target=flood) for _ in range(4)]
        for each in floods:
            each.start()
        try:
            for _ in range(30):
                threads, _ = ask(self.place, self.key, 'count')
                self.assertLessEqual(threads, FEW)
        finally:
            over.set()
            for each in floods:
                each.join()

    def test_a_server_that_ran_out_of_descriptors_recovers(self):
        with contextlib.ExitStack() as stack:
            channels = [stack.enter_context(keyed_server.connect(self.place, self.key))
                        for _ in range(230)]
            more = [socket.create_connection(self.place, SECONDS) for _ in range(40)]
            for each in channels[:20]:
                each.close()
            self.assertGreater(ask(self.place, self.key, 'count')[1], 200)
            for each in more:
                each.close()


class Clients(unittest.TestCase):

    def test_all_ranks_of_a_large_job_may_come_at_once(self):
        answers = []
        with keyed_server.KeyedServer('127.0.0.1', answer) as server:
            place = ('127.0.0.1', server.port)
            threads = [threading.Thread(
                target=lambda rank=rank: answers.append(ask(place, server.key, rank)))
                for rank in range(200)]
            for each in threads:
                each.start()
            for each in threads:
                each.join()
        self.assertEqual(sorted(answers), [('answer', rank) for rank in range(200)])

    def test_strangers_that_send_byte_by_byte_are_disconnected(self):
        with unittest.mock.patch.object(keyed_server, '_PROOF_SECONDS', 0.3):
            with keyed_server.KeyedServer('127.0.0.1', answer) as server:
                with socket.create_connection(('127.0.0.1', server.port)) as stranger:
                    with self.assertRaises(OSError):
                        while True:
                            stranger.send(b'h')
                            time.sleep(0.02)

    def test_the_server_listens_on_a_port_of_hvd_port_range(self):
        def server(ports):
            with unittest.mock.patch.dict(os.environ, HVD_PORT_RANGE=ports):
                return keyed_server.KeyedServer('127.0.0.1', answer)
        with keyed_server.KeyedServer('127.0.0.1', answer) as first:
            with self.assertRaisesRegex(OSError, f'all TCP ports of HVD_PORT_RANGE={first.port}-'):
                server(f'{first.port}-{first.port}')
        with server('20001-29999') as second:
            self.assertIn(second.port, range(20001, 30000))
        for text in 'all', '7', '9-8', '1-70000':
            with self.assertRaisesRegex(ValueError, f"HVD_PORT_RANGE is '{text}', but must be"):
                server(text)

    def test_horovod_run_listens_on_the_interface_that_the_user_chooses(self):
        def place_of(chosen=None, **variables):
            with unittest.mock.patch.dict(os.environ, SLURM_JOB_ID='7', **variables):
                with function_server.FunctionServer(answer, None, chosen) as server:
                    host, port = server.environment[function_server.ADDRESS].rsplit(':', 1)
                    with contextlib.suppress(ConnectionRefusedError):
                        socket.create_connection(('127.0.0.2', int(port))).close()
                        return host, 'is reached elsewhere, too'
                    return host, 'only'
        self.assertEqual(place_of(HVD_IFACE='lo'), ('127.0.0.1', 'only'))
        self.assertEqual(place_of(HOROVOD_GLOO_IFACE='lo,eth0'), ('127.0.0.1', 'only'))
        self.assertEqual(place_of(['lo'], HVD_IFACE='nosuch0'), ('127.0.0.1', 'only'))
        self.assertEqual(place_of()[0], socket.gethostname())
        with self.assertRaisesRegex(ValueError, "network interface 'nosuch0' has no IPv4 address"):
            place_of(HVD_IFACE='nosuch0,lo')

    def test_the_end_does_not_wait_for_silent_clients(self):
        server = keyed_server.KeyedServer('127.0.0.1', answer)
        server.start()
        with keyed_server.connect(('127.0.0.1', server.port), server.key) as silent:
            with unittest.mock.patch.object(keyed_server, '_PATIENCE', 0.3):
                server.stop()
            with self.assertRaises(FAILURES):
                silent.recv()
