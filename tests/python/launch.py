# SPDX-License-Identifier: Apache-2.0
"""Runs test modules on N ranks and prints one TAP line a test, which is ok if it is on every
rank: launch.py N MODULE...

HVD_TEST_PYTHON is the interpreter (/usr/bin/python3) with the module HVD_TEST_NEEDS (torch);
HVD_TEST_LAUNCHER the command that takes "-np N COMMAND" (hvdrun of this build, else Open MPI's
mpirun). HVD_TEST_DEVICE=cuda: modules that can do both use this machine's GPUs, see device.py.
"""

import glob
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGE = os.path.join(HERE, '..', '..', 'contrib', 'python')
SECONDS = int(os.environ.get('HVD_TEST_SECONDS', 240))
PYTHON = os.environ.get('HVD_TEST_PYTHON', '/usr/bin/python3')
NEEDS = os.environ.get('HVD_TEST_NEEDS', 'torch')
DEVICE = os.environ.get('HVD_TEST_DEVICE', 'cpu')
LINE = re.compile(r'(ok|not ok) \d+ - (.*?)( # SKIP .*)?$')


def missing(ranks, modules=NEEDS):
    """Why nothing can be tested here, or None; then a comment tells what is tested with."""
    versions = ', '.join(f'"{name}", getattr({name}, "__version__", "?")'
                         for name in modules.split(', '))
    look = f'import {modules}\nprint({versions})'
    if DEVICE == 'cuda':
        look += '\nassert torch.cuda.is_available(), "no GPU"'
    probe = subprocess.run([PYTHON, '-c', look], capture_output=True, text=True, check=False)
    if probe.returncode != 0 and probe.stdout:
        return f'torch of {PYTHON} sees no usable GPU'
    if probe.returncode != 0:
        return f'{PYTHON} lacks {modules}: set HVD_TEST_PYTHON'
    comment(f'with {probe.stdout.splitlines()[-1]}')
    command = launcher(ranks)[:1]
    if command and not shutil.which(command[0]):
        return f'there is no {command[0]}: apt-get install openmpi-bin'
    return None


def launcher(ranks):
    """The command before the interpreter's name."""
    if ranks == 1:
        return []
    chosen = os.environ.get('HVD_TEST_LAUNCHER')
    if chosen:
        return [*chosen.split(), '-np', str(ranks)]
    return ['mpirun', '--allow-run-as-root', '--oversubscribe', '--bind-to', 'none', '-np',
            str(ranks)]


def sanitizer():
    """The command before the interpreter's name when libhvd was built with gcc's address
    sanitizer, which must be loaded first; and libstdc++ with it, whose throw it replaces. Python
    itself leaks, so leaks are not looked for."""
    listing = subprocess.run(['ldd', os.environ.get('HVD_LIBRARY', '')], capture_output=True,
                             text=True, check=False).stdout
    found = re.search(r'libasan\S* => (\S+)', listing)
    if not found:
        return []
    return ['env', f'LD_PRELOAD={found.group(1)}:libstdc++.so.6', 'ASAN_OPTIONS=detect_leaks=0']


def environment(ranks, **variables):
    """The environment of the launcher."""
    path = [PACKAGE, os.environ.get('PYTHONPATH', '')]
    return dict(os.environ, PYTHONPATH=os.pathsep.join(filter(None, path)),
                PYTHONDONTWRITEBYTECODE='1',
                OMP_NUM_THREADS='1', HVD_TEST_RANKS=str(ranks), **variables)


def run_ranks(ranks, command, options=(), python=PYTHON, **variables):
    """Runs the command on the ranks, with options for the launcher; returns its exit status and
    output, None for a status when the time limit ended it."""
    process = subprocess.Popen([*launcher(ranks), *options, *sanitizer(), python, *command],
                               env=environment(ranks, **variables),
                               text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               start_new_session=True)
    try:
        output, _ = process.communicate(timeout=SECONDS)
        return process.returncode, output
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGTERM)
        try:
            output, _ = process.communicate(timeout=10)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            output, _ = process.communicate()
        return None, output


def comment(text):
    for line in text.splitlines():
        print('#', line)


def verdicts(path):
    """The tests of one rank: {promise: (verdict, skip)}, and its comments."""
    tests, comments = {}, []
    for line in open(path):
        match = LINE.match(line)
        if match:
            tests[match.group(2)] = (match.group(1), match.group(3) or '')
        elif line.startswith('#'):
            comments.append(line)
    return tests, comments


def merge(ranks, directory):
    """Prints a line a test and the ranks' comments; returns how many failed and were run."""
    reports = [verdicts(path) for path in sorted(glob.glob(os.path.join(directory, '*')))]
    promises = list(dict.fromkeys(promise for tests, _ in reports for promise in tests))
    failed = 0
    for number, promise in enumerate(promises, 1):
        each = [tests.get(promise, ('never ended', '')) for tests, _ in reports]
        each += [('never began', '')] * (ranks - len(each))
        good = all(verdict == 'ok' for verdict, _ in each)
        skip = ''.join(sorted({skip for _, skip in each})) if good else ''
        print('ok' if good else 'not ok', number, '-', promise + skip)
        if not good:
            failed += 1
            comment(f'on the ranks: {", ".join(verdict for verdict, _ in each)}')
    for rank, (_, comments) in enumerate(reports):
        for line in comments:
            print(f'# report {rank}:', line.rstrip())
    return failed, len(promises)


def main():
    ranks, modules = int(sys.argv[1]), sys.argv[2:]
    reason = missing(ranks)
    if reason:
        print(f'1..0 # SKIP {reason}')
        return 0
    directory = tempfile.mkdtemp(prefix='hvd-test-')
    try:
        status, output = run_ranks(ranks, [os.path.join(HERE, 'tap.py'), *modules],
                                   HVD_TAP_DIR=directory)
        failed, count = merge(ranks, directory)
    finally:
        shutil.rmtree(directory)
    ended = 'ran out of time' if status is None else f'exit status {status}'
    print('ok' if status == 0 else 'not ok', count + 1, f'- {ranks} ranks end without an error')
    if status != 0:
        comment(f'{ended} of {" ".join(launcher(ranks))}\n{output}')
    print(f'1..{count + 1}')
    return 1 if failed or status != 0 else 0


if __name__ == '__main__':
    sys.exit(main())
