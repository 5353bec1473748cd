# SPDX-License-Identifier: Apache-2.0
"""A name is defined once in the whole tree, also in parts that are never linked together.

usage: names_test.py SOURCE_ROOT BUILD"""

import collections
import re
import sys

import sources

_GUARD = re.compile(r'^#ifndef (\w+)\n#define \1$', re.M)
_MACRO = re.compile(r'^\s*#\s*define (\w+)', re.M)
_TAG = re.compile(r'\b(?:struct|union|enum)\s+(\w+)\s*\{')
_ENUM = re.compile(r'\benum\b\s*\w*\s*\{([^}]*)\}')
_CONSTANT = re.compile(r'(?:^|,)\s*([A-Za-z_]\w*)')


def twice(places):
    """Returns the names of {name: {file, ...}} that are in several files."""
    return [f'{name}: {", ".join(sorted(files))}' for name, files in sorted(places.items())
            if len(files) > 1]


def exported(root, build):
    places = collections.defaultdict(set)
    for item in sources.objects(root, build):
        for name in item.defined:
            if name != 'main':
                places[name].add(item.source)
    return places


def constants(text):
    """Returns the names of all constants of all enums."""
    for body in _ENUM.findall(text):
        yield from _CONSTANT.findall(re.sub(r'\([^()]*\)|=[^,]*', '', body))


def collect(tree, find, files):
    places = collections.defaultdict(set)
    for file in files:
        for name in find(sources.strip(tree.text(file))):
            places[name].add(file)
    return places


def main(root, build):
    tree = sources.Tree(root)
    headers = [file for file in tree.files if file.endswith('.h')]
    unguarded = [file for file in headers if not _GUARD.search(tree.text(file))
                 and '#include' in tree.text(file)]
    names = exported(root, build)
    return sources.report([
        ('the build has exported names', [] if len(names) > 500 else [f'only {len(names)}']),
        ('each exported name is defined in one source', twice(names)),
        ('each tag of a struct, union or enum in headers is defined once, and none of them in a source',
         twice({name: files for name, files in collect(tree, _TAG.findall, tree.files).items()
                if name.startswith('hvd_') or any(file.endswith('.h') for file in files)})),
        ('each constant of an enum is defined once', twice(collect(tree, constants, headers))),
        ('each header has a guard of its own', unguarded + twice(collect(tree, _GUARD.findall, headers))),
        ('each macro is defined in one header', twice(collect(tree, _MACRO.findall, headers))),
    ])


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:]))
