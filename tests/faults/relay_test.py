#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests that ranks do not connect through a stranger's relay. The second network cards of two nodes have the same
address, like docker0, virbr0 and management controllers. On the node of rank 1, the relay listens at that address, on
each port on which rank 0 listens. It forwards connections to the same address on rank 0's node. Prints TAP.

    relay_test.py TWO_NODES HVDRUN FAULT_RANK
    relay_test.py --cable NAMESPACE NAMESPACE DEVICE    called by two_nodes.sh
"""

import ctypes
import os
import pathlib
import selectors
import socket
import subprocess
import sys
import tempfile
import threading

CLONE_NEWNET = 0x40000000
SHARED = '172.31.255.1'
FIRST = '10.98.0.1'  # rank 0's address on the cable
LISTENS = '0A'
LOOK = 0.02  # seconds
MODES = 'HVD_RELAY_FOLDER', 'HVD_RELAY_CUT'


def make_cable(namespaces, device):
    """Makes the cable and a second card on each node. HVD_RELAY_CUT=1: rank 1 cannot use the cable."""
    folder, is_cut = (os.environ[name] for name in MODES)
    ip = ['ip', 'link', 'add', device, 'netns', namespaces[0], 'type', 'veth', 'peer', 'name', device,
          'netns', namespaces[1]]
    subprocess.run(ip, check=True)
    for namespace in namespaces:
        for line in (f'link add docker0 type veth peer name {device[:10]}far', f'addr add {SHARED}/24 dev docker0',
                     'link set docker0 up', f'link set {device[:10]}far up'):
            subprocess.run(['ip', '-n', namespace, *line.split()], check=True)
    if is_cut == '1':
        subprocess.run(['ip', '-n', namespaces[1], 'route', 'add', 'unreachable', FIRST], check=True)
    names = pathlib.Path(folder, 'names')
    names.with_suffix('.new').write_text(' '.join(namespaces))
    names.with_suffix('.new').rename(names)


def enter(namespace):
    """Moves this thread to a network namespace, in which it then creates its sockets."""
    with open(f'/run/netns/{namespace}') as place:
        if ctypes.CDLL(None, use_errno=True).setns(place.fileno(), CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def listening_ports():
    """Yields the ports of listening sockets in the network namespace of this thread."""
    for table in 'tcp', 'tcp6':
        for line in pathlib.Path(f'/proc/thread-self/net/{table}').read_text().splitlines()[1:]:
            local, state = (line.split()[i] for i in (1, 3))
            if state == LISTENS:
                yield int(local.rpartition(':')[2], 16)


class Relay(threading.Thread):
    """Relays connections until the job has ended."""

    def __init__(self, folder, job):
        super().__init__()
        self._folder, self._job = folder, job
        self._ports = selectors.DefaultSelector()
        self.ports = set()
        self.caught = 0

    def _await_names(self):
        names = pathlib.Path(self._folder, 'names')
        while not names.exists() and self._job.poll() is None:
            self._ports.select(LOOK)
        return names.read_text().split()

    def _look_for_ports(self, namespaces):
        enter(namespaces[0])
        found = set(listening_ports()) - self.ports
        enter(namespaces[1])
        for port in found:
            listener = socket.create_server((SHARED, port))
            self._ports.register(listener, selectors.EVENT_READ)
        self.ports |= found

    def _catch(self, namespaces, listener):
        near, _ = listener.accept()
        enter(namespaces[0])
        try:
            far = socket.create_connection((SHARED, listener.getsockname()[1]))
        except OSError:
            near.close()
            return
        self.caught += 1
        self._ports.register(near, selectors.EVENT_READ, far)
        self._ports.register(far, selectors.EVENT_READ, near)

    def _pass_on(self, near, far):
        try:
            data = near.recv(65536)
            far.sendall(data)
        except OSError:
            data = b''
        if not data:
            for end in near, far:
                self._ports.unregister(end)
                end.close()

    def run(self):
        try:
            namespaces = self._await_names()
            while self._job.poll() is None:
                self._look_for_ports(namespaces)
                for key, _ in self._ports.select(LOOK):
                    if key.data is None:
                        self._catch(namespaces, key.fileobj)
                    elif key.fileobj.fileno() >= 0:
                        self._pass_on(key.fileobj, key.data)
        except OSError:  # the job has ended, and its namespaces are gone
            pass


def run_job(two_nodes, hvdrun, rank, **variables):
    """Runs two ranks beside a relay; returns their output, their exit status and the relay."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, **dict(zip(MODES, (folder, '0'))), 'HVD_NET': 'tcp',
                       'HVD_TWO_NODES_CABLE': f'{os.path.abspath(__file__)} --cable', **variables}
        job = subprocess.Popen([two_nodes, hvdrun, '1,1', rank, '9', 'boot', 'mark', '0', '0.3'], env=environment,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        relay = Relay(folder, job)
        relay.start()
        said = job.communicate()[0]
        relay.join()
        return said, job.returncode, relay


class Report:
    """Prints lines of TAP and counts them."""

    def __init__(self):
        self.count = self.failed = 0

    def __call__(self, promise, is_kept, said):
        self.count += 1
        self.failed += not is_kept
        if not is_kept:
            print(*(f'# {line}' for line in said.splitlines()), sep='\n')
        print('ok' if is_kept else 'not ok', self.count, '-', promise, flush=True)


def main(two_nodes, hvdrun, rank):
    report = Report()

    said, status, relay = run_job(two_nodes, hvdrun, rank)
    report(f'a job starts beside a stranger at an address that both nodes have; it listens on {len(relay.ports)} '
           f'ports and catches {relay.caught} connections',
           status == 0 and said.count('done ') == 2 and relay.ports and relay.caught == 0, said)

    said, status, relay = run_job(two_nodes, hvdrun, rank, HVD_RELAY_CUT='1', HVD_START_TIMEOUT='4')
    report(f'if only the stranger can reach rank 0, the job does not start over it; the stranger catches '
           f'{relay.caught} connections',
           status != 0 and 'done ' not in said and relay.ports and relay.caught == 0, said)
    report('the error names the address that cannot be reached',
           f'tried {FIRST} port' in said and 'No route to host' in said, said)

    said, status, relay = run_job(two_nodes, hvdrun, rank, HVD_IFACE='docker0', HVD_START_TIMEOUT='4')
    report('if no other address is allowed, the error says why that one is not used',
           status != 0 and 'are also addresses of this host' in said and 'set HVD_IFACE' in said and
           relay.caught == 0, said)
    print(f'1..{report.count}')
    return 1 if report.failed else 0


def has_namespaces():
    return os.geteuid() == 0 and subprocess.run(['unshare', '--net', 'ip', 'link'], capture_output=True,
                                                check=False).returncode == 0


if __name__ == '__main__':
    if sys.argv[1] == '--cable':
        make_cable(sys.argv[2:4], sys.argv[4])
    elif has_namespaces():
        sys.exit(main(*sys.argv[1:]))
    else:
        print('1..0 # SKIP network namespaces need root and the command ip')
