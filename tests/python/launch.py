# SPDX-License-Identifier: Apache-2.0
"""Runs test modules on N ranks: launch.py N MODULE... Prints a TAP line for each test, which is ok
if the test passes on every rank.

    HVD_TEST_PYTHON    the interpreter; default /usr/bin/python3
    HVD_TEST_NEEDS     the module that it must have; default torch
    HVD_TEST_LAUNCHER  the launcher, which takes "-np N COMMAND"; in a build its hvdrun; default
                       mpirun
    HVD_TEST_DEVICE    cuda: use this machine's GPUs, see device.py; pretended: see
                       on_torch_distributed/pretended_gpu.py
"""

import glob
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGE = os.path.join(HERE, '..', '..', 'contrib', 'python')
PYTHON = os.environ.get('HVD_TEST_PYTHON', '/usr/bin/python3')
NEEDS = os.environ.get('HVD_TEST_NEEDS', 'torch')
DEVICE = os.environ.get('HVD_TEST_DEVICE', 'cpu')
# The time limit of a job. No job takes that long, even on a very busy machine.
LIMIT_S = 150 * int(os.environ.get('HVD_TEST_TIMES', 4))
GRACE_S = 30  # how long a job may take to end after SIGTERM
MARK = '== the next script'  # the line before the output of each script, see scripts.py
LINE = re.compile(r'(ok|not ok) \d+ - (.*?)( # SKIP .*)?$')


# Looks for modules without importing them: the import of a framework takes seconds.
LOOK = '''
import importlib.metadata, importlib.util, sys
if not all(map(importlib.util.find_spec, sys.argv[1:])):
    sys.exit("missing")
owners = getattr(importlib.metadata, "packages_distributions", dict)()  # since Python 3.10
print(*(f"{name} {importlib.metadata.version(owners[name][0]).split('+')[0]}"
        if name in owners else f"{name} ?" for name in sys.argv[1:]))
'''


def missing(ranks, modules=NEEDS):
    """Returns the reason why nothing can be tested here, or None. Prints the versions of the
    modules in a comment."""
    probe = subprocess.run([PYTHON, '-c', LOOK, *modules.split(', ')], capture_output=True,
                           text=True, check=False)
    if probe.returncode != 0:
        return f'{PYTHON} lacks {modules}: set HVD_TEST_PYTHON'
    if DEVICE == 'cuda' and subprocess.run(
            [PYTHON, '-c', 'import torch; assert torch.cuda.is_available()'],
            capture_output=True, check=False).returncode != 0:
        return f'torch of {PYTHON} sees no usable GPU'
    comment(f'with {probe.stdout.strip()}')
    command = launcher(ranks)[:1]
    if command and not shutil.which(command[0]):
        return f'there is no {command[0]}: apt-get install openmpi-bin'
    return None


def launcher(ranks):
    """Returns the launcher and its options: the words of the command before the interpreter."""
    if ranks == 1:
        return []
    chosen = os.environ.get('HVD_TEST_LAUNCHER')
    if chosen:
        return [*chosen.split(), '-np', str(ranks)]
    return ['mpirun', '--allow-run-as-root', '--oversubscribe', '--bind-to', 'none', '-np',
            str(ranks)]


def sanitizer():
    """Returns the words of the command that preload gcc's address sanitizer, if libhvd was built
    with it. libstdc++ is preloaded, too, because the sanitizer replaces its function that throws.
    Leak detection is off, because Python itself leaks."""
    listing = subprocess.run(['ldd', os.environ.get('HVD_LIBRARY', '')], capture_output=True,
                             text=True, check=False).stdout
    found = re.search(r'libasan\S* => (\S+)', listing)
    if not found:
        return []
    return ['env', f'LD_PRELOAD={found.group(1)}:libstdc++.so.6', 'ASAN_OPTIONS=detect_leaks=0']


def environment(ranks, **variables):
    """Returns the environment of the launcher. Ranks that wait too long for each other end with an
    error, after a time that a test may change."""
    path = [PACKAGE, os.environ.get('PYTHONPATH', '')]
    return {**os.environ, 'PYTHONPATH': os.pathsep.join(filter(None, path)), 'PYTHONDONTWRITEBYTECODE': '1',
            'HOROVOD_STALL_SHUTDOWN_TIME_SECONDS': '200', 'OMP_NUM_THREADS': '1', 'HVD_TEST_RANKS': str(ranks),
            **variables}


def end(*_):
    """Handles a signal by an exception, so that this program prints its results so far and cleans
    up."""
    sys.exit('ended by a signal: out of time?')


def end_job(process):
    """Ends the launcher, which ends its ranks; returns their output."""
    process.terminate()
    try:
        return process.communicate(timeout=GRACE_S)[0]
    except subprocess.TimeoutExpired:
        process.kill()
        return process.communicate()[0]


def run_ranks(ranks, command, options=(), python=PYTHON, **variables):
    """Runs the command on the ranks, with options for the launcher; returns the exit status and the
    output. Ends a job that exceeds the time limit; its status is 124."""
    signal.signal(signal.SIGTERM, end)
    with subprocess.Popen([*launcher(ranks), *options, *sanitizer(), python, *command],
                          env=environment(ranks, **variables), text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        try:
            output, _ = process.communicate(timeout=LIMIT_S)
        except subprocess.TimeoutExpired:
            output = end_job(process)
            return 124, f'{output}\nended: it ran for {LIMIT_S} s: {" ".join(map(str, command))}'
        except BaseException:
            process.terminate()
            raise
        return process.returncode, output


def run_scripts(ranks, *commands):
    """Runs scripts, each with its arguments, one after the other in one job. Returns the exit
    status and the output of each script, or the whole output for each if one failed."""
    status, output = run_ranks(ranks, [os.path.join(HERE, 'scripts.py'), json.dumps(commands)])
    parts = output.split(f'{MARK}\n')[1:]
    whole = status == 0 and len(parts) == len(commands)
    return status, parts if whole else [output] * len(commands)


def comment(text):
    for line in text.splitlines():
        print('#', line)


def verdicts(path):
    """Reads the TAP of one rank; returns {promise: (verdict, skip)} and the comments."""
    tests, comments = {}, []
    for line in open(path):
        match = LINE.match(line)
        if match:
            tests[match.group(2)] = (match.group(1), match.group(3) or '')
        elif line.startswith('#'):
            comments.append(line)
    return tests, comments


def merge(ranks, directory):
    """Prints a line for each test, and the comments of the ranks. Returns how many tests failed and
    how many ran."""
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
    finally:
        failed, count = merge(ranks, directory)
        shutil.rmtree(directory)
    print('ok' if status == 0 else 'not ok', count + 1, f'- {ranks} ranks end without an error')
    if status != 0:
        comment(f'exit status {status} of {" ".join(launcher(ranks))}\n{output}')
    print(f'1..{count + 1}')
    return 1 if failed or status != 0 else 0


if __name__ == '__main__':
    sys.exit(main())
