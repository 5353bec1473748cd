# SPDX-License-Identifier: Apache-2.0
"""The C sources of the tree, what they include, and what their objects define and want."""

import collections
import functools
import json
import os
import re
import subprocess

FOLDERS = ('gpu_binding', 'pmix_boot', 'collectives', 'spank', 'contrib')

_INCLUDE = re.compile(r'^\s*#\s*include "([^"]+)"', re.M)


def strip(text):
    """Returns C code without comments, strings and characters; lines keep their numbers."""
    def blank(match):
        return '\n' * match.group().count('\n') if match.group()[0] == '/' else '""'
    return re.sub(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', blank, text,
                  flags=re.S)


class Tree:
    """The sources below root, without tests; paths are relative to it."""

    def __init__(self, root):
        self.root = root
        self.files = sorted(os.path.relpath(os.path.join(folder, name), root)
                            for top in FOLDERS
                            for folder, _, names in os.walk(os.path.join(root, top))
                            for name in names if name.endswith(('.c', '.h', '.cu')))

    @functools.lru_cache(maxsize=None)
    def text(self, file):
        with open(os.path.join(self.root, file), encoding='utf-8') as source:
            return source.read()

    @functools.lru_cache(maxsize=None)
    def includes(self, file):
        """Returns the project's own headers that a file includes, in order."""
        found = []
        for name in _INCLUDE.findall(self.text(file)):
            places = (name, os.path.join(os.path.dirname(file), name),
                      os.path.join('gpu_binding', 'base', name))
            found += [place for place in places
                      if os.path.exists(os.path.join(self.root, place))][:1]
        return found

    @functools.lru_cache(maxsize=None)
    def chain(self, file):
        """Returns the longest chain of includes that begins in a file."""
        chains = [[header] + self.chain(header) for header in self.includes(file)]
        return max(chains, key=len, default=[])

    def reached(self, file):
        """Returns all headers that a file includes, directly or not."""
        seen, left = set(), self.includes(file)
        while left:
            header = left.pop()
            if header not in seen:
                seen.add(header)
                left = left + self.includes(header)
        return seen


Object = collections.namedtuple('Object', 'source defined wanted')
Object.__doc__ = """An object file: the names that others may use, and the names that it uses of others."""


def compiled(root, build):
    """Returns {object: source} of all that a build compiles, except tests."""
    with open(os.path.join(build, 'compile_commands.json')) as file:
        commands = json.load(file)
    of_output = {}
    for command in commands:
        source = os.path.relpath(os.path.realpath(os.path.join(command['directory'], command['file'])),
                                 os.path.realpath(root))
        if source.split('/')[0] in FOLDERS and not command['output'].startswith('tests/'):
            of_output[os.path.join(build, command['output'])] = source
    return of_output


def objects(root, build):
    """Returns the objects of a build that belong to sources of the tree, except tests."""
    of_output = {output: Object(source, {}, set()) for output, source in compiled(root, build).items()
                 if os.path.exists(output)}
    listed = subprocess.check_output(['nm', '--print-file-name', '--extern-only', '--format=posix',
                                      *of_output], text=True)
    for line in listed.splitlines():
        output, _, symbol = line.partition(': ')
        name, kind = symbol.split()[:2]
        if kind == 'U':
            of_output[output].wanted.add(name)
        elif kind not in 'vw':
            of_output[output].defined[name] = kind
    return list(of_output.values())


def report(checks):
    """Prints TAP for checks, (promise, lines about what breaks it); returns the exit status."""
    failed = 0
    for number, (promise, wrong) in enumerate(checks, 1):
        print(f'{"not ok" if wrong else "ok"} {number} - {promise}')
        for line in wrong:
            print('#', line)
        failed += bool(wrong)
    print(f'1..{number}')
    return 1 if failed else 0
