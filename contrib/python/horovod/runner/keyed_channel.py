# SPDX-License-Identifier: Apache-2.0
"""A handshake by which a client and a server prove to each other that they have the same key, and
authenticated messages between them. Neither sends the key, and neither unpickles data that the
other side has not authenticated:

    client  ──>  hello      nonce c, authenticator over "hello", c
    server  ──>  challenge  nonce s, authenticator over "server", c, s
    client  ──>  proof      authenticator over "client", c, s
    server  ──>  welcome    authenticator over "welcome", c, s

The word in each authenticator is its role. An authenticator cannot be used in another role, so an
attacker cannot answer a challenge with a message of the other side or of another client. After the
handshake each direction has its own key, derived from both nonces, and messages are numbered: a
message that was changed, repeated, dropped, reordered or reflected is rejected. Messages are not
encrypted.
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
    """The other side does not have the key, or its messages were changed on the way."""


def _tag(key, role, *parts):
    """Returns an authenticator. For each role, all parts except the last have fixed lengths."""
    code = hmac.new(key, role, hashlib.sha256)
    for part in parts:
        code.update(part)
    return code.digest()


def _check(tag, key, role, *parts):
    if not hmac.compare_digest(tag, _tag(key, role, *parts)):
        raise Untrusted(f'the authenticator of a message ({role.decode()}) is wrong: the sender '
                        'does not have the key, or the message was changed on its way')


def _read(stream, count):
    """Reads exactly ``count`` bytes from the socket. EOFError if the connection ends before."""
    data = bytearray(count)
    view = memoryview(data)
    while view:
        received = stream.recv_into(view)
        if received == 0:
            raise EOFError('the other side closed the connection')
        view = view[received:]
    return data


class Channel:
    """An authenticated connection whose messages are picklable objects. ``send`` and ``recv`` raise
    OSError, or its subclass Untrusted; ``recv`` raises EOFError at the end. Owns the socket, which
    is blocking."""

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
        """Receives a message. Its length has its own authenticator, which is checked before memory
        of that size is allocated."""
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
    """Performs the client's handshake on a connected socket; returns the Channel. Untrusted if the
    server does not have the key; EOFError or OSError if the connection fails."""
    own = secrets.token_bytes(_NONCE_BYTES)
    stream.sendall(_MAGIC + own + _tag(key, b'hello', own))
    challenge = _read(stream, _CHALLENGE_BYTES)
    nonces = own + challenge[:_NONCE_BYTES]
    _check(challenge[_NONCE_BYTES:], key, b'server', nonces)
    stream.sendall(_tag(key, b'client', nonces))
    _check(_read(stream, _TAG_BYTES), key, b'welcome', nonces)
    return Channel(stream, key, nonces, is_server=False)


class Admission:
    """The server's handshake with one client. It does no I/O: the caller passes the received bytes
    to ``take`` and sends the answer."""

    def __init__(self, key):
        self._key = key
        self._nonces = b''
        self._arrived = b''
        self._expects = _HELLO_BYTES
        self.has_said_hello = False  # whether the client has sent a hello made with the key
        self.is_done = False

    @property
    def missing(self):
        """How many bytes of the client's next message have not arrived yet."""
        return self._expects - len(self._arrived)

    def take(self, data):
        """Handles received bytes. Returns the bytes to send back, which may be none. Untrusted if
        the client does not have the key."""
        self._arrived += data
        if self.missing:
            return b''
        arrived, self._arrived = self._arrived, b''
        return self._prove(arrived) if not self.has_said_hello else self._welcome(arrived)

    def _prove(self, hello):
        magic, nonce = hello[:len(_MAGIC)], hello[len(_MAGIC):-_TAG_BYTES]
        if magic != _MAGIC:
            raise Untrusted('the first message is not that of a client of hvd')
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
        """Returns the Channel on this socket, after the handshake is done."""
        return Channel(stream, self._key, self._nonces, is_server=True)
