# SPDX-License-Identifier: Apache-2.0
"""Vulnerabilities of Horovod's servers, which execute data that anyone sends to them:
CVE-2024-10190 in elastic jobs, CVE-2026-31234 in the key-value store. The test plays both attacks
against every socket on which a process of a job listens, from its start to its end. Prints TAP;
starts its ranks itself."""

import base64
import contextlib
import http.client
import http.server
import os
import pickle
import socket
import struct
import subprocess
import tempfile
import threading
import time

import launch
from report import run_check

# Ranks that run until the attacks have ended.
JOB = '''
import os, sys, time
import horovod.common.basics as hvd
def train(folder):
    hvd.init()
    if hvd.rank() == 0:
        open(os.path.join(folder, 'ready'), 'w').close()
    while not os.path.exists(os.path.join(folder, 'end')):
        time.sleep(0.01)
    right = not hvd.should_stop()
    hvd.shutdown()
    return right
if __name__ == '__main__':
    assert train(sys.argv[1])
'''
RUN = '''
import sys
import horovod
from job import train
assert horovod.run(train, args=(sys.argv[1],), np=2) == [True, True]
'''
ROUNDS = 3  # attacks on each socket while all ranks are running
PATIENCE_S = 0.2  # how long to wait for an answer


class Evil:
    """Executes code when it is unpickled: creates a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (self.path,)


def requests(folder):
    """Returns {name: bytes} for the two attacks, and for the same pickle without HTTP."""
    def evil(name):
        return pickle.dumps(Evil(os.path.join(folder, f'executed: {name}')))

    def put(name, path):
        body = base64.b64encode(evil(name))
        head = f'PUT /{path} HTTP/1.1\r\nHost: there\r\nContent-Length: {len(body)}\r\n\r\n'
        return name, head.encode() + body
    bare = evil('pickle')
    return dict([put('CVE-2024-10190', 'worker_addresses/localhost:0'),
                 put('CVE-2026-31234', 'runfunc/func'), put('result of a rank', 'runfunc_result/0'),
                 ('pickle', bare), ('pickle with its length', struct.pack('>I', len(bare)) + bare)])


def executed(folder):
    return sorted(name for name in os.listdir(folder) if name.startswith('executed: '))


# --- Horovod's servers ---

class Store(http.server.BaseHTTPRequestHandler):
    """A stand-in for Horovod's servers with the same vulnerabilities."""

    def do_PUT(self):
        body = self.rfile.read(int(self.headers['Content-Length']))
        if self.path.startswith('/worker_addresses/'):
            pickle.loads(base64.b64decode(body))
        self.server.values[self.path] = body
        self.send_response(200)
        self.end_headers()

    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(self.server.values[self.path])

    def log_message(self, *_):
        pass


def play_against_store(report, place):
    """Checks that the attacks work, on the stand-in."""
    folder = os.path.join(place, 'store')
    os.mkdir(folder)
    with http.server.HTTPServer(('127.0.0.1', 0), Store) as server:
        server.values = {}
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        for data in requests(folder).values():
            with contextlib.suppress(OSError), socket.create_connection(server.server_address) as stranger:
                stranger.sendall(data)
                stranger.shutdown(socket.SHUT_WR)
                stranger.recv(100)
        worker = http.client.HTTPConnection(*server.server_address)
        worker.request('GET', '/runfunc/func')
        pickle.loads(base64.b64decode(worker.getresponse().read()))
        worker.close()
        server.shutdown()
        thread.join()
    report.line(executed(folder) == ['executed: CVE-2024-10190', 'executed: CVE-2026-31234'],
                "both attacks work on servers such as Horovod's", executed(folder))


# --- a job ---

def descendants(pid):
    found = [pid]
    for parent in found:
        with contextlib.suppress(OSError):
            for task in os.listdir(f'/proc/{parent}/task'):
                with open(f'/proc/{parent}/task/{task}/children') as file:
                    found += map(int, file.read().split())
    return found


def inodes(pid):
    for fd in os.listdir(f'/proc/{pid}/fd'):
        with contextlib.suppress(OSError):
            link = os.readlink(f'/proc/{pid}/fd/{fd}')
            if link.startswith('socket:['):
                yield link[8:-1]


def listening(pid):
    """Yields (family, address) of each socket on which the process or one of its descendants
    listens."""
    own = set()
    for each in descendants(pid):
        with contextlib.suppress(OSError):
            own |= set(inodes(each))
    for name, family, host in ('tcp', socket.AF_INET, '127.0.0.1'), ('tcp6', socket.AF_INET6, '::1'):
        with open(f'/proc/net/{name}') as table:
            for fields in map(str.split, list(table)[1:]):
                if fields[3] == '0A' and fields[9] in own:
                    yield family, (host, int(fields[1].split(':')[1], 16))
    with open('/proc/net/unix') as table:
        for fields in map(str.split, list(table)[1:]):
            if int(fields[3], 16) & 1 << 16 and fields[6] in own and fields[7:]:
                yield socket.AF_UNIX, fields[7].replace('@', '\0')


def attack(family, address, data):
    with contextlib.suppress(OSError), socket.socket(family) as stranger:
        stranger.settimeout(PATIENCE_S)
        stranger.connect(address)
        stranger.sendall(data)
        stranger.recv(1 << 16)


def attack_all(process, folder):
    """Attacks the job until it ends. After ROUNDS attacks on all its sockets, tells it to end.
    Returns the attacked sockets."""
    rounds, attacked = 0, set()
    while process.poll() is None:
        is_ready = os.path.exists(os.path.join(folder, 'ready'))
        for place in set(listening(process.pid)):
            for data in requests(folder).values():
                attack(*place, data)
            attacked.add(place)
        rounds += is_ready
        if rounds == ROUNDS:
            open(os.path.join(folder, 'end'), 'w').close()
        time.sleep(0.01)
    return attacked


def play(report, place, what, command, least):
    """Starts a job and attacks it. ``least``: the least number of sockets to find; some are open
    only at the start."""
    folder = os.path.join(place, what)
    os.mkdir(folder)
    environment = launch.environment(2)
    environment['PYTHONPATH'] += os.pathsep + place
    environment['PATH'] = f"{os.path.dirname(os.environ['HVD_TEST_LAUNCHER'])}:{environment['PATH']}"
    with tempfile.TemporaryFile('w+') as output, subprocess.Popen(
            [*command, folder], env=environment, stdout=output, stderr=subprocess.STDOUT) as process:
        attacked = attack_all(process, folder)
        output.seek(0)
        said = output.read()
    launch.comment(f'{what}: {len(attacked)} sockets, '
                   f'{sum(family != socket.AF_UNIX for family, _ in attacked)} of them TCP ports')
    report.line(process.returncode == 0 and len(attacked) >= least,
                f'{what}: the job ends without an error', said)
    report.line(executed(folder) == [], f'{what}: no code of the attacks is executed', executed(folder))


def check(report):
    place = report.directory
    for name, text in ('job.py', JOB), ('run.py', RUN):
        with open(os.path.join(place, name), 'w') as file:
            file.write(text)
    job, run = (os.path.join(place, name) for name in ('job.py', 'run.py'))
    play_against_store(report, place)
    hvdrun = launch.launcher(2)
    play(report, place, 'hvdrun', [*hvdrun, launch.PYTHON, job], 1)
    play(report, place, 'elastic', [*hvdrun, '--min-np', '2', '--max-np', '2', launch.PYTHON, job], 1)
    play(report, place, 'horovod.run', [launch.PYTHON, run], 1)


if __name__ == '__main__':
    run_check(check, 2, 'json', with_hvdrun=True)
