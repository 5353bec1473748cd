#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The system calls about files, sockets and processes that slurmstepd makes while it can be root.

    root_calls.py TRACE            prints the calls in a trace of slurmd by strace -f, one a line, sorted
    root_calls.py TRACE WITHOUT... prints only calls that are in none of the other traces

A task's process counts until it has given up root for good. Numbers are replaced by N, so that two runs can be
compared.
"""

import re
import sys

CALL = re.compile(r'^(\d+) +(\w+)\((.*)')
PATH = re.compile(r'"((?:[^"\\]|\\.)*)"')
BORN = re.compile(r'^(\d+) +(?:<\.\.\. )?(?:clone3?|v?fork)\b.*(?:parent_tid=\[(\d+)\]|\) += (\d+)$)')
DROPS = re.compile(r'^[1-9]\d*, ([1-9]\d*)')
WATCHED = frozenset('''access chmod chown connect bind creat execve execveat faccessat faccessat2 fchmodat
    fchownat fork kill link linkat listen mkdir mkdirat mknod mknodat mount newfstatat open openat
    openat2 ptrace readlink readlinkat rename renameat renameat2 rmdir sendto socket stat lstat symlink
    symlinkat truncate umount2 unlink unlinkat utimensat vfork clone clone3'''.split())


def plain(name, arguments):
    """Formats a call as a text that is the same in every run."""
    path = PATH.search(arguments) if name != 'sendto' else None  # the sent data differ
    if name in ('clone', 'clone3'):
        return None if 'CLONE_THREAD' in arguments else 'a new process'
    return re.sub(r'\d+', 'N', f'{name} {path[1] if path else arguments.split(",")[0]}')


def family_of(lines):
    """Finds the processes and threads of slurmstepd among those of slurmd."""
    children = {}
    family = []
    for line in lines:
        born = BORN.match(line)
        if born is not None:
            children.setdefault(born[1], []).append(born[2] or born[3])
        elif ' execve(' in line and 'slurmstepd' in line:
            family.append(line.split()[0])
    for pid in family:
        family += children.get(pid, [])
    return frozenset(family)


def calls_of(path):
    """Finds the calls of a trace that slurmstepd makes as root."""
    with open(path, encoding='utf-8', errors='replace') as trace:
        lines = trace.readlines()
    family = family_of(lines)
    dropped = set()
    found = set()
    for line in lines:
        call = CALL.match(line)
        if call is None or call[1] not in family:
            continue
        pid, name, arguments = call.groups()
        if name in ('setreuid', 'setresuid', 'setuid') and DROPS.match(arguments):
            dropped.add(pid)
        if pid not in dropped and name in WATCHED:
            found.add(plain(name, arguments))
    return found - {None}


def main():
    calls = calls_of(sys.argv[1])
    for other in sys.argv[2:]:
        calls -= calls_of(other)
    print('\n'.join(sorted(calls)))


main()
