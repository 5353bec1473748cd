#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The recipes for Spack and EasyBuild agree with meson.build and meson_options.txt.

usage: recipes_test.py SOURCE_ROOT"""

import ast
import glob
import os
import re
import sys

from report import end, report

root = sys.argv[1]
SPACK = 'contrib/packaging/spack/spack_repo/hvd/packages/hvd/package.py'
EASYCONFIGS = sorted(glob.glob(f'{root}/contrib/packaging/easybuild/*.eb'))


def read(path):
    with open(os.path.join(root, path), encoding='utf-8') as file:
        return file.read()


def numbers(version):
    return [int(number) for number in version.split('.')]


def check_easyconfig(path):
    text, name = read(path), os.path.basename(path)
    ast.parse(text)
    stated = re.search(r"^version = '(.*)'", text, re.MULTILINE)[1]
    report([] if stated == VERSION and name.startswith(f'hvd-{VERSION}') else [f'{stated}, not {VERSION}'],
           f'{name} is for the version of hvd in meson.build')
    older = [f'{library} {version} is older than {OLDEST[library.lower()]}'
             for library, version in re.findall(r"\('(\w+)', '([\d.]+)'\)", text)
             if numbers(version) < numbers(OLDEST.get(library.lower(), '0'))]
    report(older, f'{name} asks for no library that is too old')


build = read('meson.build')
VERSION = re.search(r"version: '([\d.]+)'", build)[1]
OLDEST = {library: version for version, library in re.findall(r"'([\d.]+)': (\w+)_dep", build)}
OLDEST['libsodium'] = OLDEST.pop('sodium')
OLDEST['meson'] = re.search(r"meson_version: '>= ([\d.]+)'", build)[1]
options = set(re.findall(r"^option\('(\w+)'", read('meson_options.txt'), re.MULTILINE))
options |= {'c_args', 'libdir'}  # of meson itself

recipe = read(SPACK)
ast.parse(recipe)
stated = dict(re.findall(r'depends_on\("(\w+)@([\d.]+):"', recipe))
report([f'{library}: {stated.get(library)}, not {version}' for library, version in OLDEST.items()
        if stated.get(library) != version], 'Spack asks for the oldest versions that meson.build accepts')
used = {(name, path) for path in [SPACK, *EASYCONFIGS] for name in re.findall(r'-D(\w+)=', read(path))}
used |= {(name, SPACK) for names in re.findall(r'for feature in \((.*)\)', recipe) for name in re.findall(r'"(\w+)"', names)}
report([f'{path}: {name}' for name, path in sorted(used) if name not in options],
       'the recipes set options that meson_options.txt has')
for easyconfig in EASYCONFIGS:
    check_easyconfig(easyconfig)
end()
