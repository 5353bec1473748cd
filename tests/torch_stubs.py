# SPDX-License-Identifier: Apache-2.0
"""Lets PyTorch's CUDA wheel load on a machine without CUDA: PyPI has no other for Linux on x86-64.

usage: python3 torch_stubs.py SITE_PACKAGES

The wheel's libraries link with gigabytes of CUDA libraries, but call none of them without a GPU.
Only libcudart must be the real one: it reports that there is no GPU. One small library replaces all
others: it is installed under all their names and has all their symbols. Each symbol is a function
that returns 1, which is an error in all these interfaces. So this PyTorch is for machines without a
GPU; on a machine with a GPU set CUDA_VISIBLE_DEVICES= (empty).
"""

import collections
import glob
import os
import re
import subprocess
import sys

SYSTEM = re.compile(r'lib(c|m|dl|rt|pthread|stdc\+\+|gcc_s|gomp|util|cuda)\.so|ld-linux')


def readelf(path, *options):
    return subprocess.run(['readelf', '-W', *options, path], check=True, capture_output=True,
                          text=True).stdout


class Library:
    """The symbols that one library needs and defines. Symbols are pairs of name and version ('' for none)."""

    def __init__(self, path):
        self.needed = re.findall(r'\(NEEDED\).*\[(.+)\]', readelf(path, '-d'))
        self.file_of_version = {}
        for line in readelf(path, '-V').splitlines():
            if match := re.search(r'\bFile: (\S+)', line):
                file = match[1]
            elif match := re.search(r'\bName: (\S+)\s+Flags', line):
                self.file_of_version[match[1]] = file
        self.defined, self.undefined = set(), set()
        for line in readelf(path, '--dyn-syms').splitlines():
            words = line.split()
            if len(words) >= 8 and words[4] == 'GLOBAL':
                name, _, version = words[7].partition('@')
                names = self.undefined if words[6] == 'UND' else self.defined
                names.add((name, version.lstrip('@')))


def missing(libraries, present):
    """Returns the names of missing libraries, and {version: symbols} that the present ones expect in them."""
    files = {file for library in libraries for file in library.needed
             if file not in present and not SYSTEM.match(file)}
    defined = {name for library in libraries for name, _ in library.defined}
    symbols = collections.defaultdict(set)
    for library in libraries:
        for name, version in library.undefined:
            if version and library.file_of_version.get(version) in files:
                symbols[version].add(name)
            elif not version and name not in defined:
                symbols[''].add(name)
    return files, symbols


def build(symbols, path):
    """Builds one library that defines the symbols with their versions."""
    with open(path + '.s', 'w') as source:
        for name in sorted(set().union(*symbols.values())):
            source.write(f'.globl {name}\n.type {name}, @function\n{name}:\n')
        source.write('movl $1, %eax\nret\n.section .note.GNU-stack\n')
    with open(path + '.map', 'w') as script:
        for version, names in symbols.items():
            if version:
                script.write(f'{version} {{ global: {"; ".join(sorted(names))}; }};\n')
    subprocess.run(['gcc', '-shared', '-nostdlib', f'-Wl,--version-script={path}.map',
                    '-o', path, path + '.s'], check=True)


def main(site):
    directory = os.path.join(site, 'torch', 'lib')
    paths = glob.glob(os.path.join(site, 'torch', '**', '*.so'), recursive=True)
    true_ones = glob.glob(os.path.join(site, 'nvidia', '**', '*.so*'), recursive=True)
    present = {os.path.basename(path) for path in paths + true_ones}
    files, symbols = missing([Library(path) for path in paths + true_ones], present)
    if not files:
        return
    stub = os.path.join(directory, 'libstub.so')
    build(symbols, stub)
    for file in files:
        os.symlink('libstub.so', os.path.join(directory, file))
    print(f'in place of {len(files)} libraries: {stub}', file=sys.stderr)


if __name__ == '__main__':
    main(sys.argv[1])
