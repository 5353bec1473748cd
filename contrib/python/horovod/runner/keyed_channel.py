# SPDX-License-Identifier: Apache-2.0
"""How a client and a server prove to each other that they have one key, and the messages that they
exchange afterwards. Neither shows the key, and nothing is unpickled that the other side has not
authenticated:

    client  ──>  hello      nonce c, authenticator over "hello", c
    server  ──>  challenge  nonce s, authenticator over "server", c, s
    client  ──>  proof      authenticator over "client", c, s
    server  ──>  welcome    authenticator over "welcome", c, s

The word in each authenticator is its role: none can be used in the place of another, so nobody can
have one side's question answered by the other side, or by a second client. Each direction then has
a key derived from both nonces, and each message its number: one that was changed, repeated, left
out, reordered or sent back fails. A message is not encrypted.
"""

import hashlib
import hmac
import pickle
import secrets
import struct

_MAGIC = b'hvd key1'  # changes with the protocol
_NONCE_BYTES = 32
_TAG_BYTES = 32
_HELLO_BYTES = len(_MAGIC) + _NONCE_BYTES + _TAG_BYTES
_CHALLENGE_BYTES = _NONCE_BYTES + _TAG_BYTES
_LENGTH = struct.Struct('!Q')
_NUMBER = struct.Struct('!Q')


class Untrusted(ConnectionError):
    """The other side does not have the key, or somebody changed its messages."""


def _tag(key, role, *parts):
    """An authenticator. The parts of a role always have the same lengths, but for the last."""
    code = hmac.new(key, role, hashlib.sha256)
    for part in parts:
        code.update(part)
    return code.digest()


def _check(tag, key, role, *parts):
    if not hmac.compare_digest(tag, _tag(key, role, *parts)):
        raise Untrusted(f'the authenticator of a message ({role.decode()}) is wrong: the sender '
                        'does not have the key, or the message was changed on its way')


def _read(stream, count):
    """So many bytes of the socket; EOFError."""
    data = bytearray(count)
    view = memoryview(data)
    while view:
        received = stream.recv_into(view)
        if received == 0:
            raise EOFError('the other side closed the connection')
        view = view[received:]
    return data


class Channel:
    """The messages of one connection: any picklable objects. ``send`` and ``recv`` raise OSError,
    of which Untrusted is one, and ``recv`` EOFError at the end. Owns the socket, which blocks."""

    def __init__(self, stream, key, nonces, is_server):
        self._stream = stream
        keys = [_tag(key, role, nonces) for role in (b'from server', b'from client')]
        self._sending, self._receiving = keys if is_server else reversed(keys)
        self._sent = self._received = 0

    def send(self, obj):
        body = pickle.dumps(obj)
        number, length = _NUMBER.pack(self._sent), _LENGTH.pack(len(body))
        self._sent += 1
        self._stream.sendall(length + _tag(self._sending, b'length', number, length))
        self._stream.sendall(body)
        self._stream.sendall(_tag(self._sending, b'body', number, body))

    def recv(self):
        """The length has an authenticator of its own: a wrong one would have us reserve memory."""
        number = _NUMBER.pack(self._received)
        self._received += 1
        header = _read(self._stream, _LENGTH.size + _TAG_BYTES)
        length, tag = header[:_LENGTH.size], header[_LENGTH.size:]
        _check(tag, self._receiving, b'length', number, length)
        body = _read(self._stream, _LENGTH.unpack(length)[0])
        _check(_read(self._stream, _TAG_BYTES), self._receiving, b'body', number, body)
        return pickle.loads(body)

    def close(self):
        self._stream.close()

    def __enter__(self):
        return self

    def __exit__(self, *failure):
        self.close()


def join(stream, key):
    """The client's handshake on a connected socket: the Channel. EOFError or OSError, of which
    Untrusted is one: a server without the key."""
    own = secrets.token_bytes(_NONCE_BYTES)
    stream.sendall(_MAGIC + own + _tag(key, b'hello', own))
    challenge = _read(stream, _CHALLENGE_BYTES)
    nonces = own + challenge[:_NONCE_BYTES]
    _check(challenge[_NONCE_BYTES:], key, b'server', nonces)
    stream.sendall(_tag(key, b'client', nonces))
    _check(_read(stream, _TAG_BYTES), key, b'welcome', nonces)
    return Channel(stream, key, nonces, is_server=False)


class Admission:
    """The server's handshake with one client; pure: ``take`` gets what arrives."""

    def __init__(self, key):
        self._key = key
        self._nonces = b''
        self._arrived = b''
        self._expects = _HELLO_BYTES
        self.has_said_hello = False  # with the key
        self.is_done = False

    @property
    def missing(self):
        """How many bytes to read next at most."""
        return self._expects - len(self._arrived)

    def take(self, data):
        """Returns what to answer, often nothing; Untrusted."""
        self._arrived += data
        if self.missing:
            return b''
        arrived, self._arrived = self._arrived, b''
        return self._prove(arrived) if not self.has_said_hello else self._welcome(arrived)

    def _prove(self, hello):
        magic, nonce = hello[:len(_MAGIC)], hello[len(_MAGIC):-_TAG_BYTES]
        if magic != _MAGIC:
            raise Untrusted('this is no hello of a client of hvd')
        _check(hello[-_TAG_BYTES:], self._key, b'hello', nonce)
        self.has_said_hello, self._expects = True, _TAG_BYTES
        own = secrets.token_bytes(_NONCE_BYTES)
        self._nonces = nonce + own
        return own + _tag(self._key, b'server', self._nonces)

    def _welcome(self, proof):
        _check(proof, self._key, b'client', self._nonces)
        self.is_done = True
        return _tag(self._key, b'welcome', self._nonces)

    def channel(self, stream):
        """Of a handshake that is done."""
        return Channel(stream, self._key, self._nonces, is_server=True)
