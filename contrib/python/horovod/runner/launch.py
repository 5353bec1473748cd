# SPDX-License-Identifier: Apache-2.0
"""hvdrun from Python: its path, its command line, and jobs that call a function.

``python -m horovod.runner.launch ...`` is the same as ``hvdrun ...``.
"""

import os
import shutil
import subprocess
import sys

from horovod.common import library
from horovod.runner.function_server import FunctionServer

# Options of hvdrun: those with another name in Python (_NAMES), those without an argument
# (_SWITCHES), and those that also exist as --no-... (_BOTH_WAYS). _NOT_OPTIONS are attributes that
# are not passed to hvdrun.
_NAMES = {'slots': 'slots-per-host', 'cooldown_range': 'blacklist-cooldown-range',
          'nics': 'network-interfaces', 'tcp_flag': 'tcp'}
_SWITCHES = {'check_build', 'disable_cache', 'verbose', 'prefix_output_with_timestamp', 'tcp_flag',
             'no_stall_check', 'use_gloo', 'use_mpi', 'use_jsrun'}
_BOTH_WAYS = {'autotune', 'hierarchical_allreduce', 'hierarchical_allgather', 'torus_allreduce',
              'timeline_mark_cycles', 'mpi_threads_disable'}
_NOT_OPTIONS = {'command', 'run_func', 'executable', 'nic'}


def find_hvdrun():
    """Returns the path of the hvdrun that belongs to libhvd. FileNotFoundError if there is none."""
    if not os.path.isabs(library.PATH):  # the dynamic linker has found libhvd
        paths = [shutil.which('hvdrun') or 'hvdrun']
    else:
        directory = os.path.dirname(os.path.realpath(library.PATH))
        paths = [os.path.normpath(os.path.join(directory, place)) for place in (
            '../bin/hvdrun', '../../bin/hvdrun', '../pmix_boot/hvdrun/hvdrun')]
    for path in paths:
        if os.access(path, os.X_OK):
            return path
    raise FileNotFoundError(f'there is no hvdrun next to {library.PATH}: hvd was built without '
                            'PMIx or hwloc, which hvdrun needs; install both and build hvd again')


def words_of(options):
    """Returns hvdrun's command line for the attributes of ``options``."""
    words = []
    for attribute, value in vars(options).items():
        if value is None or attribute in _NOT_OPTIONS:
            continue
        name = _NAMES.get(attribute, attribute.replace('use_', '').replace('_', '-'))
        if attribute in _SWITCHES:
            words += [f'--{name}'] if value else []
        elif attribute in _BOTH_WAYS:
            words.append(f'--{name}' if value else f'--no-{name}')
        elif attribute == 'log_with_timestamp':
            words.append('--log-with-timestamp' if value else '--log-without-timestamp')
        elif attribute == 'cooldown_range':
            words += [f'--{name}', *map(str, value)]
        elif isinstance(value, (list, tuple, set)):
            words += [f'--{name}', ','.join(map(str, value))]
        else:
            words += [f'--{name}', str(value)]
    return words


def run_commandline():
    """Replaces this process by hvdrun, with the same arguments."""
    program = find_hvdrun()
    sys.stdout.flush()
    os.execv(program, ['hvdrun', *sys.argv[1:]])


def _run(args):
    """Runs a job and waits for its end. ``args``: a horovod.runner._HorovodArgs. Returns the list
    of results of run_func in rank order, or None for a command. RuntimeError if the job fails."""
    words = [find_hvdrun(), *words_of(args)]
    if args.run_func is None:
        status = _wait([*words, *args.command], os.environ)
        if status != 0:
            raise RuntimeError(f'{" ".join(words)} ended with exit code {status}')
        return None
    with FunctionServer(args.run_func, args.hosts or args.hostfile, args.nics) as server:
        worker = [args.executable or sys.executable, '-m', 'horovod.runner.function_worker']
        status = _wait([*words, *worker], dict(os.environ, **server.environment))
    return server.results(status)


def _wait(command, environment):
    """Runs the command; returns its exit code. If an exception interrupts the wait, such as that of
    Ctrl-C, ends the job."""
    process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL)
    try:
        return process.wait()
    finally:
        if process.poll() is None:
            process.terminate()
            process.wait()


if __name__ == '__main__':
    run_commandline()
