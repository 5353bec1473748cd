# SPDX-License-Identifier: Apache-2.0
"""Starts a job of the fault table, disturbs it from outside, and checks how it has ended."""

import dataclasses
import glob
import os
import random
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import time
import uuid

import cgroup

HERE = os.path.dirname(os.path.realpath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
TWO_NODES = os.path.join(ROOT, 'contrib', 'bench', 'two_nodes.sh')
OWN_SHM = os.path.join(ROOT, 'tests', 'collectives', 'own_shm.sh')
MARK = 'HVD_TEST_FAULT'  # environment variable of all processes of a job
LEAVE_SECONDS = 20  # how long processes may take to end, on a busy machine
FAILURES = ('kill', 'segv', 'exit', 'raise', 'os_exit', 'memory')  # faults after which hvdrun names the victim
BOOT_US, DELAY_US = 30000, 400000  # longest delay between reaching a place and the fault

_LINE = re.compile(r'^(fault|said|done) (\d+) (\d+) ?(.*)$')


@dataclasses.dataclass
class Result:
    problems: list
    code: int
    told: list  # seconds from the fault until each survivor got its error
    drawn: str
    output: str


class Job:
    def __init__(self, case, tools, seed, limit):
        draw = random.Random(seed)
        self.case, self.tools, self.limit = case, tools, limit
        self.layout = draw.choice(case.layouts)
        self.place = draw.choice(case.places)
        self.ranks = sum(map(int, self.layout.split(',')))
        self.victim = draw.randrange(self.ranks)
        is_short = self.place in ('boot', 'init', 'shutdown')
        self.delay_us = draw.randrange(BOOT_US if is_short else DELAY_US)
        self.mark = uuid.uuid4().hex
        self.lines, self.events, self.is_killed = [], [], False
        self.work = tempfile.mkdtemp(prefix='hvd-faults-')
        self.cgroup = cgroup.Cgroup(f'hvd-faults-{self.mark}', case.memory) if case.memory else None

    # --- start ---

    def program(self):
        words = [self.tools.rank]
        if self.case.program == 'Python':
            words = [self.tools.python, os.path.join(HERE, 'rank.py')]
        return [*self.case.wrap, *words, str(self.victim), self.place, self.case.how,
                str(self.delay_us), str(self.case.seconds)]

    def command(self):
        if ',' in self.layout:
            words = [TWO_NODES, self.tools.hvdrun, self.layout]
        else:
            words = [self.tools.hvdrun, '-np', self.layout]
        words = [OWN_SHM, *words, *self.program()]
        if self.case.shm:
            script = f'{self.case.shm} || exit 125; "$@"; status=$?; rm /dev/shm/full; exit $status'
            words = [OWN_SHM, 'sh', '-c', script, 'sh', *words[1:]]
        return self.cgroup.inside(words) if self.cgroup else words

    def environment(self):
        env = {name: value for name, value in os.environ.items()
               if not name.startswith(('HOROVOD_', 'HVD_')) or name == 'HVD_LIBRARY'}
        env.update(item.split('=') for item in self.case.settings)
        env.update({MARK: self.mark, 'TMPDIR': self.work, 'HVD_BOOT_HELPER': self.tools.boot_helper,
                    'PYTHONPATH': os.path.join(ROOT, 'contrib', 'python')})
        if self.case.cable:
            env['HVD_TWO_NODES_CABLE'] = ' '.join(
                [self.tools.python, os.path.join(HERE, 'cable.py'), *map(str, self.case.cable)])
        return env

    # --- while it runs ---

    def processes(self):
        """Yields (pid, name) of all processes of the job."""
        wanted = f'{MARK}={self.mark}'.encode()
        for path in glob.glob('/proc/[0-9]*/environ'):
            try:
                with open(path, 'rb') as environ, open(path.replace('environ', 'comm')) as name:
                    if wanted in environ.read().split(b'\0'):
                        yield int(path.split('/')[2]), name.read().strip()
            except OSError:
                pass  # the process has ended

    def act(self, pid):
        """Disturbs the job from outside, as soon as the fault is due. pid: the victim's process."""
        enter = f'nsenter --net=/proc/{pid}/ns/net'
        if self.case.act == 'continue':
            threading.Timer(1, os.kill, (pid, signal.SIGCONT)).start()
        elif self.case.act == 'kill hvdrun':
            for process, name in self.processes():
                if name == 'hvdrun':
                    os.kill(process, signal.SIGKILL)
        elif self.case.act in ('blink', 'cut'):
            threading.Thread(target=self.cut, args=(pid,)).start()

    def cut(self, pid):
        """Takes the link between the nodes down: for a second, or for good."""
        enter = ['nsenter', f'--net=/proc/{pid}/ns/net', 'ip']
        links = subprocess.run([*enter, '-o', 'link', 'show'], capture_output=True, text=True).stdout
        link = re.search(r'\bhvd\d*', links).group()
        # Start ip first, so that the link goes down without delay.
        ip = subprocess.Popen([*enter, '-batch', '-'], stdin=subprocess.PIPE, text=True, bufsize=1)
        ip.stdin.write(f'link set {link} down\n')
        if self.case.act == 'cut':
            ip.communicate()
        else:
            threading.Timer(1, ip.communicate, (f'link set {link} up\n',)).start()

    def read(self, stream):
        for line in stream:
            self.lines.append(line)
            match = _LINE.match(line)
            if match:
                what, rank, ns, rest = match.groups()
                self.events.append((what, int(rank), int(ns) / 1e9, rest))
                if what == 'fault' and self.case.act:
                    self.act(int(rest))

    def kill(self):
        self.is_killed = True
        for process, _ in self.processes():
            try:
                os.kill(process, signal.SIGKILL)
            except OSError:
                pass

    def run(self):
        with subprocess.Popen(self.command(), env=self.environment(), text=True, errors='replace',
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT) as process:
            timer = threading.Timer(self.limit, self.kill)
            timer.start()
            self.read(process.stdout)
            timer.cancel()
            code = process.wait()
        problems = list(self.problems(code))
        if self.cgroup:
            self.cgroup.remove()
        shutil.rmtree(self.work, ignore_errors=True)
        drawn = f'rank {self.victim} of {self.layout}, {self.place} after {self.delay_us} us'
        return Result(problems, code, self.told(), drawn, ''.join(self.lines))

    # --- its end ---

    def time_of_fault(self):
        return next((time for what, _, time, _ in self.events if what == 'fault'), None)

    def told(self):
        start = self.time_of_fault()
        return [time - start for what, rank, time, _ in self.events
                if what == 'said' and start is not None and
                (rank != self.victim or self.case.fate == 'told far')]

    def expected_text(self, rank):
        """Returns a regex for the error of a survivor: the rank, its host and the operation."""
        host = r'node\d' if ',' in self.layout else r'[\w.-]+'
        operation = r"(, (in|before) [a-z]+( '.*')?$|[A-Z]+ \S+ has waited for)"
        if self.case.fate == 'left':
            return rf'rank {self.victim} on {host}.* Horovod has been shut down'
        if self.case.fate in ('told early', 'told first'):
            return rf'rank {self.victim} (\(?(on|host) [\w.-]+|(exited|was killed) .* and did not call init)'
        who = self.victim
        if self.case.fate == 'told far':
            first = int(self.layout.split(',')[0])
            who = '|'.join(map(str, range(first, self.ranks) if rank < first else range(first)))
        return rf'rank ({who}) on {host}.*{operation}'

    def was_ended(self):
        """Returns whether hvdrun has ended the remaining ranks."""
        return any(line.startswith('hvdrun: rank ') and line.endswith('the other ranks were ended\n')
                   for line in self.lines)

    def unnamed(self):
        said = {rank: text for what, rank, _, text in self.events if what == 'said'}
        done = {rank for what, rank, _, _ in self.events if what == 'done'}
        for rank in range(self.ranks):
            if rank == self.victim and self.case.fate != 'told far':
                continue
            if self.case.fate == 'any' and rank in done:
                continue
            if rank not in said and self.case.fate == 'told first' and said and self.was_ended():
                continue
            if rank not in said:
                yield f'rank {rank} said nothing'
            elif not re.search(self.expected_text(rank), said[rank]):
                yield f'rank {rank} was told "{said[rank]}"'

    def left_behind(self):
        end = time.monotonic() + LEAVE_SECONDS
        while list(self.processes()) and time.monotonic() < end:
            time.sleep(0.05)
        for process, name in self.processes():
            yield f'process {process} ({name}) is left'
        yield from (line.strip() for line in self.lines if line.startswith('left in /dev/shm'))
        for name in os.listdir(self.work):
            inside = os.path.join(self.work, name)
            yield f'{name} is left in TMPDIR: {os.listdir(inside) if os.path.isdir(inside) else "a file"}'

    def problems(self, code):
        output = ''.join(self.lines)
        if self.is_killed:
            yield f'hangs: killed after {self.limit} s'
        if code not in self.case.codes:
            yield f'exit code {code}, not {" or ".join(map(str, self.case.codes))}'
        if self.time_of_fault() is None:
            yield 'the fault did not come'
        if self.case.fate not in ('ended', 'done', 'gone'):
            yield from self.unnamed()
        fails = self.case.how in FAILURES and self.place != 'shutdown'
        if (fails or self.case.fate == 'ended') and not re.search(
                rf'^hvdrun: rank {self.victim} ', output, re.M):
            yield f'hvdrun does not name rank {self.victim}'
        if self.cgroup and 'signal 9 (Killed): memory ran out: ' not in output:
            yield 'hvdrun does not say that memory ran out'
        if self.case.fate == 'done':
            done = sum(what == 'done' for what, *_ in self.events)
            if done != self.ranks:
                yield f'{done} of {self.ranks} ranks ended well'
        yield from self.left_behind()
