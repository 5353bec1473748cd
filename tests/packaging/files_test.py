#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Each file that `meson install` installs is in exactly one package, as a deb and as an rpm.

usage: files_test.py SOURCE_ROOT BUILD PREFIX LIBDIR"""

import fnmatch
import os
import re
import subprocess
import sys
import tempfile

from report import end, report

root, build, prefix, libdir = sys.argv[1:]
packaging = os.path.join(root, 'contrib', 'packaging')


def read(*path):
    with open(os.path.join(packaging, *path), encoding='utf-8') as file:
        return file.read()


def installed_files(stage):
    """Installs to the folder and returns {path below /: mode}, as if the prefix were /usr."""
    subprocess.run(['meson', 'install', '-C', build, '--no-rebuild', '--quiet'], check=True, stdout=subprocess.DEVNULL,
                   env={**os.environ, 'DESTDIR': stage})
    found = {}
    for folder, _, names in os.walk(stage):
        for name in names:
            file = os.path.join(folder, name)
            path = '/' + os.path.relpath(file, stage)
            if path.startswith(prefix + '/'):
                path = '/usr' + path[len(prefix):]
            found[re.sub('^/(usr/(?=etc/))?', '', path)] = file
    return found


def is_script(file):
    if not os.path.isfile(file):
        return False
    with open(file, 'rb') as opened:
        return opened.read(2) == b'#!'


def matches(path, pattern):
    """As the packagers' tools do: a pattern that matches a folder stands for all files below it."""
    parts, wanted = path.split('/'), pattern.split('/')
    return len(parts) >= len(wanted) and all(map(fnmatch.fnmatchcase, parts, wanted))


def problems_of(files, packages):
    found = []
    for path in files:
        holders = [name for name, patterns in packages.items() if any(matches(path, each) for each in patterns)]
        if len(holders) != 1:
            found.append(f'{path} is in {len(holders)} packages: {" ".join(holders)}')
    return found


def packages_of_debs():
    return {name: read('debian', f'{name}.install').split() for name in ('hvd', 'hvd-slurm-plugin')}


def packages_of_rpms():
    text = read('hvd.spec.in').replace('%{_lib}', 'lib64')
    lists = re.findall(r'^%files( slurm-plugin)?\n(.*?)\n\n', text, re.MULTILINE | re.DOTALL)
    return {'hvd' + name.replace(' ', '-'): [line.split()[-1].lstrip('/') for line in lines.split('\n')
                                            if line and not line.startswith('%dir')]
            for name, lines in lists}


def main():
    with tempfile.TemporaryDirectory() as stage:
        files = installed_files(stage)
        report(problems_of([path.replace(libdir, 'lib/ARCH') for path in files], packages_of_debs()),
               'each installed file is in exactly one deb')
        report(problems_of([path.replace(libdir, 'lib64').replace('slurm-wlm', 'slurm') for path in files],
                           packages_of_rpms()), 'each installed file is in exactly one rpm')
        report([path for path, file in files.items() if is_script(file) and not os.access(file, os.X_OK)],
               'each installed script is executable')
    end()


main()
