# SPDX-License-Identifier: Apache-2.0
"""Jobs without a launcher of hvd: the ranks find each other through stores of torch.distributed, a
store written in Python, and torchrun's store. Prints TAP; starts its ranks itself."""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

import launch
from report import run_check

# Some builds of torch lack libuv, which TCPStore uses by default.
STORE = '''
import datetime, sys
import torch.distributed as dist
NO_LIBUV = {'use_libuv': False} if 'use_libuv' in dist.TCPStore.__init__.__doc__ else {}
'''

COMMON = STORE + '''
import os
import torch
import horovod.torch as hvd

def check(what, rank, size):
    assert (hvd.rank(), hvd.size()) == (rank, size), (what, hvd.rank(), hvd.size())
    total = hvd.allreduce(torch.tensor([1.0 + rank]), op=hvd.Sum, name='total').item()
    assert total == size * (size + 1) / 2, (what, total)
    # One write: torchrun makes the output unbuffered, and the ranks share it.
    print(f'{what}: rank {rank} of {size}\\n', end='', flush=True)
    hvd.shutdown()
'''

STORES = COMMON + '''
rank, size, folder, port = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], int(sys.argv[4])
limit = datetime.timedelta(seconds=200)
tcp = dist.TCPStore('127.0.0.1', port, None, False, limit, **NO_LIBUV)

files = dist.FileStore(os.path.join(folder, 'file'), size)
hvd.init(store=files, rank=rank, size=size)
check('files', rank, size)
hvd.init()
check('files again', rank, size)
os.environ.update(RANK=str(rank), WORLD_SIZE=str(size))
hvd.init(store=tcp)
check('server', rank, size)
for number in range(3):
    hvd.init(store=dist.PrefixStore('mine', tcp))
    check(f'prefix {number}', rank, size)

class Own(dist.Store):
    def set(self, key, value):
        files.set('own/' + key, value)
    def get(self, key):
        return files.get('own/' + key)
    def add(self, key, number):
        return files.add('own/' + key, number)
    def wait(self, keys, timeout):
        files.wait(['own/' + key for key in keys], timeout)

hvd.init(store=Own())
check('own', rank, size)
'''

TORCHRUN = COMMON + '''
rank, size = int(os.environ['RANK']), int(os.environ['WORLD_SIZE'])
hvd.init()
check('torchrun', rank, size)
hvd.init()
check('torchrun again', rank, size)
dist.init_process_group('gloo', init_method='env://')
hvd.init()
ones = torch.ones(1)
dist.all_reduce(ones)
assert ones.item() == size
check('torchrun beside gloo', rank, size)
'''

FOLDER = '''
import sys
import horovod.common.basics as hvd
rank, size = int(sys.argv[1]), int(sys.argv[2])
for what in 'folder', 'folder again':
    hvd.init()
    assert (hvd.rank(), hvd.size(), hvd.local_size()) == (rank, size, size)
    print(f'{what}: rank {rank} of {size}\\n', end='', flush=True)
    hvd.shutdown()
'''

ANOTHER_FOLDER = '''
import os, sys
import horovod.common.basics as hvd
rank, size = int(sys.argv[1]), int(sys.argv[2])
for job, number in ('first', rank), ('second', size - 1 - rank):
    os.environ.update(HVD_STORE=os.path.join(sys.argv[3], job), RANK=str(number), WORLD_SIZE=str(size))
    hvd.init()
    print(f'{job}: rank {hvd.rank()} of {hvd.size()}\\n', end='', flush=True)
    assert hvd.rank() == number
    hvd.shutdown()
'''

SECRETS = COMMON + '''
try:
    hvd.init(store=dist.FileStore(sys.argv[2], 2), rank=int(sys.argv[1]), size=2)
    print('met')
except ValueError as error:
    print(error)
'''

SERVER = STORE + '''
store = dist.TCPStore('127.0.0.1', 0, None, True, datetime.timedelta(seconds=200), **NO_LIBUV)
print(store.port, flush=True)
sys.stdin.read()
'''

FAILURES = '''
import os
import horovod.common.basics as hvd

class Bad:
    failure = OSError('the server is gone')
    def add(self, key, number): return 1
    def set(self, key, value): raise self.failure
    def get(self, key): raise self.failure
    def wait(self, keys, timeout): raise RuntimeError('Socket Timeout')

class Interrupted(Bad):
    failure = KeyboardInterrupt()

class Deaf(Bad):
    def set(self, key, value): pass

def attempt(**arguments):
    try:
        hvd.init(**arguments)
        print('no error')
    except BaseException as failure:
        print(f'{type(failure).__name__}: {failure}', flush=True)

attempt(store=Bad(), rank=0, size=2)
attempt(store=Interrupted(), rank=0, size=2)
attempt(store=Deaf(), rank=0, size=2)
attempt(store=Bad(), rank=2, size=2)
attempt(store={}, rank=0, size=2)
attempt(store=Bad(), size=2)
attempt(store=Bad(), rank='0', size=2)
attempt(rank=0, size=2)
attempt(store=Bad(), comm=[0])
os.environ['RANK'] = 'x'
attempt(store=Bad(), size=2)
'''

EXPECTED = [
    r"ValueError: hvd.init\(\) failed: the program's store cannot put hvd.2.1.0: "
    r'OSError: the server is gone',
    r'KeyboardInterrupt: ',
    r'ValueError: hvd.init\(\) failed: 1 of 2 ranks did not start within 1 s: rank 1;',
    r'ValueError: hvd.init\(\) failed: rank 2 of 2: .* numbered from 0',
    r'TypeError: store is {}, of type dict: expected a store .* set, get, add, wait',
    r'ValueError: a store is given without rank, and RANK is not set',
    r"TypeError: rank is '0', of type str: expected a whole number",
    r'ValueError: rank and size are given without a store',
    r'ValueError: hvd.init\(\) takes comm or store, not both',
    r"ValueError: RANK is 'x': expected a whole number",
]


def bare_environment(**variables):
    """Returns an environment without variables of a launcher."""
    inherited = launch.environment(1, **variables)
    return {name: value for name, value in inherited.items()
            if name in variables or not re.match(r'(PMIX?|SLURM|OMPI|TORCHELASTIC)_|RANK$|WORLD_SIZE$', name)}


def python(script, *arguments, **variables):
    return subprocess.Popen([*launch.sanitizer(), launch.PYTHON, '-c', script, *arguments],
                            env=bare_environment(**variables), text=True, stdin=subprocess.PIPE,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


class Server:
    """A process with a TCPStore, like torchrun's agent."""

    def __enter__(self):
        self.process = python(SERVER)
        self.port = self.process.stdout.readline().strip()
        return self.port

    def __exit__(self, *_):
        self.process.communicate()


def outputs(ranks):
    """Waits for the processes; returns whether all have succeeded, and their output."""
    said = [rank.communicate()[0] for rank in ranks]
    return all(rank.returncode == 0 for rank in ranks), ''.join(said)


def are_there(output, what, size):
    lines = output.splitlines()
    return all(f'{what}: rank {rank} of {size}' in lines for rank in range(size))


def check_stores(report, size):
    folder = tempfile.mkdtemp(prefix='hvd-test-')
    try:
        with Server() as port:
            good, output = outputs([python(STORES, str(rank), str(size), folder, port)
                                    for rank in range(size)])
    finally:
        shutil.rmtree(folder)
    for what, promise in (('files', 'a FileStore'), ('files again', 'the same FileStore again, without arguments'),
                          ('server', 'a TCPStore, by RANK and WORLD_SIZE'),
                          ('prefix 2', 'a PrefixStore made anew three times'),
                          ('own', 'a store in Python')):
        report.line(are_there(output, what, size), f'{size} ranks start with {promise}', output)
    report.line(good, f'{size} ranks end without an error', output)


def check_torchrun(report, size):
    """Starts ranks with the variables that torchrun's agent sets, and with those of PMIx and Slurm,
    as if srun had started torchrun."""
    with Server() as port:
        shared = {'WORLD_SIZE': str(size), 'MASTER_ADDR': '127.0.0.1', 'MASTER_PORT': port,
                  'TORCHELASTIC_RUN_ID': 'none', 'TORCHELASTIC_USE_AGENT_STORE': 'True',
                  'TORCHELASTIC_RESTART_COUNT': '0', 'HVD_SECRET': 'of the user, on all ranks', 'GLOO_SOCKET_IFNAME': 'lo',
                  'PMIX_NAMESPACE': 'slurm.pmix.7.0', 'PMIX_RANK': '0', 'SLURM_STEP_ID': '0'}
        good, output = outputs([python(TORCHRUN, RANK=str(rank), **shared)
                                for rank in range(size)])
    for what in ('torchrun', 'torchrun again', 'torchrun beside gloo'):
        report.line(are_there(output, what, size), f'{size} ranks start under {what}', output)
    report.line(good, f'{size} ranks of torchrun end without an error', output)


def check_torchrun_itself(report):
    """Runs torchrun itself. Reports a skip if it fails as Debian 12's torchrun does, which does not
    work with Python 3.11."""
    with tempfile.TemporaryDirectory(prefix='hvd-test-') as folder:
        script = os.path.join(folder, 'train.py')
        with open(script, 'w') as file:
            file.write(TORCHRUN)
        done = subprocess.run(
            [*launch.sanitizer(), launch.PYTHON, '-m', 'torch.distributed.run', '--standalone',
             '--nproc_per_node', '2', script], env=bare_environment(GLOO_SOCKET_IFNAME='lo'),
            text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    skip = ' # SKIP this torchrun is not for this Python' if 'in to_map' in done.stdout else ''
    report.line(skip or (done.returncode == 0 and are_there(done.stdout, 'torchrun again', 2)),
                f'torchrun starts a script that calls hvd.init(){skip}', done.stdout)


def tony(rank, size):
    """Returns the variables that TonY sets for TensorFlow on YARN: a chief, workers, a parameter server."""
    cluster = {'worker': [f'n{1 + index}:2222' for index in range(size - 1)], 'chief': ['n1:2223'], 'ps': ['n9:1']}
    job, index = ('worker', rank - 1) if rank else ('chief', 0)
    return {'JOB_NAME': job, 'TASK_INDEX': str(index), 'TASK_NUM': str(size), 'CLUSTER_SPEC': json.dumps(cluster),
            'TF_CONFIG': json.dumps({'cluster': cluster, 'task': {'type': job, 'index': index}})}


# Launchers that tell a process only its rank and the number of ranks, and the variables that they set.
TELLERS = {
    'TonY for TensorFlow': tony,
    'TonY without TF_CONFIG': lambda rank, size: {**tony(rank, size), 'TF_CONFIG': ''},
    'TonY for PyTorch': lambda rank, size: {'RANK': str(rank), 'WORLD': str(size), 'INIT_METHOD': 'tcp://n1:2222'},
    'TonY for Horovod': lambda rank, size: {'HOROVOD_CONTROLLER': 'gloo', 'HOROVOD_RANK': str(rank),
                                            'HOROVOD_SIZE': str(size), 'JOB_NAME': 'worker'},
    'flux run': lambda rank, size: {'FLUX_TASK_RANK': str(rank), 'FLUX_JOB_SIZE': str(size)},
    'jsrun': lambda rank, size: {'JSM_NAMESPACE_RANK': str(rank), 'JSM_NAMESPACE_SIZE': str(size)},
    'srun': lambda rank, size: {'SLURM_PROCID': str(rank), 'SLURM_STEP_NUM_TASKS': str(size), 'SLURM_STEP_ID': '0'},
    'a PMI launcher': lambda rank, size: {'PMI_RANK': str(rank), 'PMI_SIZE': str(size)},
}


def check_folder(report, size):
    for launcher, variables in TELLERS.items():
        with tempfile.TemporaryDirectory(prefix='hvd-test-') as folder:
            place = os.path.join(folder, 'job', '1')
            good, output = outputs([python(FOLDER, str(rank), str(size), HVD_STORE=place, **variables(rank, size))
                                    for rank in range(size)])
            modes = {os.stat(os.path.join(place, name)).st_mode & 0o777 for name in ('.', *os.listdir(place))}
        report.line(good and are_there(output, 'folder', size) and are_there(output, 'folder again', size),
                    f'{size} ranks of {launcher} start by HVD_STORE', output)
    with tempfile.TemporaryDirectory(prefix='hvd-test-') as folder:
        good, output = outputs([python(ANOTHER_FOLDER, str(rank), str(size), folder) for rank in range(size)])
    report.line(good and are_there(output, 'second', size),
                f'{size} processes have another rank and another HVD_STORE in their next job', output)
    report.line(modes == {0o700, 0o600}, 'only the user can read HVD_STORE and its files', str(modes))


FOLDER_FAILURES = {
    'no rank is told': ({}, 'HVD_STORE is set, but no variable tells the rank of this process: set RANK'),
    'RANK is not a number': ({'RANK': 'x', 'WORLD_SIZE': '2'}, "RANK is 'x': expected a whole number"),
    'TF_CONFIG is cut off': ({'TF_CONFIG': '{"cluster": '}, 'TF_CONFIG is not JSON: Expecting value'),
    'TF_CONFIG has no task': ({'TF_CONFIG': '{"cluster": {"worker": ["a:1"]}}'}, 'TF_CONFIG does not name this task'),
    'TF_CONFIG is a list': ({'TF_CONFIG': '[]'}, 'TF_CONFIG does not name this task'),
    'TF_CONFIG has no cluster': ({'TF_CONFIG': '{"task": {"type": "worker", "index": 0}}'},
                                 'TF_CONFIG has no lists of tasks'),
    'the task is a parameter server': ({**tony(0, 2), 'TF_CONFIG': '', 'JOB_NAME': 'ps'},
                                       'CLUSTER_SPEC does not have this task, ps 0, among those that become ranks'),
    'the index is too large': ({**tony(0, 2), 'TF_CONFIG': '', 'JOB_NAME': 'worker', 'TASK_INDEX': '7'},
                               'CLUSTER_SPEC does not have this task, worker 7'),
    'others can write to the folder': ({'RANK': '0', 'WORLD_SIZE': '2', 'HVD_STORE': '/tmp'},
                                       'HVD_STORE is /tmp: expected a folder of your own'),
    'the folder cannot be made': ({'RANK': '0', 'WORLD_SIZE': '2', 'HVD_STORE': '/dev/null/job'},
                                  'HVD_STORE is /dev/null/job: the folder cannot be used: '),
}


def check_folder_failures(report):
    script = 'import horovod.common.basics as hvd\nhvd.init()'
    started = {promise: python(script, **{'HVD_STORE': '/nonexistent', **variables})
               for promise, (variables, _) in FOLDER_FAILURES.items()}
    for promise, process in started.items():
        _, output = outputs([process])
        report.line('ValueError: ' + FOLDER_FAILURES[promise][1] in output, f'an error says that {promise}', output)


def check_secrets(report):
    """Starts an impostor as rank 1: it can read and write the store, but has another
    HVD_SECRET."""
    with tempfile.TemporaryDirectory(prefix='hvd-test-') as folder:
        place = os.path.join(folder, 'store')
        good, output = outputs([python(SECRETS, str(rank), place, HVD_START_TIMEOUT='2', HVD_SECRET=secret)
                                for rank, secret in enumerate(('the secret of the user', 'that of a stranger'))])
    report.line(good and 'met' not in output and 'does not know the secret of this job' in output,
                'a rank without the HVD_SECRET of the others is rejected', output)


def check_failures(report):
    _, output = outputs([python(FAILURES, HVD_START_TIMEOUT='1')])
    lines = [line for line in output.splitlines() if re.match(r'\w+: |no error', line)]
    good = len(lines) == len(EXPECTED) and all(map(re.match, EXPECTED, lines))
    report.line(good, 'failing stores and wrong arguments raise errors with a clear text', output)


def main(report):
    check_failures(report)
    check_folder_failures(report)
    check_secrets(report)
    for size in map(int, sys.argv[1:]):
        check_stores(report, size)
        check_torchrun(report, size)
        check_folder(report, size)
    check_torchrun_itself(report)


if __name__ == '__main__':
    run_check(main, 1)
