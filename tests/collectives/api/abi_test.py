#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the binary interface of libhvd.so with collectives/libhvd.abi: its functions, their versions and prototypes,
the sizes and offsets of public structs, and the values of constants.

usage: abi_test.py [--write] ROOT LIBRARY COMPILER...
--write writes the list anew.
"""

import os
import re
import subprocess
import sys
import tempfile

HEADERS = ('gpu_binding/base/hvd_status.h', 'collectives/hvd.h')
LIST = 'collectives/libhvd.abi'
MAP = 'collectives/libhvd.map'
HEAD = '''\
# The binary interface of libhvd.so on 64-bit machines, which tests/collectives/api/abi_test.py compares with the library
# and with hvd.h.
'''

FUNCTION = re.compile(r'^(?:const )?\w+(?: \w+)* \*?(hvd_\w+)\(([^;{]*)\);', re.MULTILINE)
STRUCT = re.compile(r'^struct (hvd_\w+) \{(.*?)^\};', re.MULTILINE | re.DOTALL)
MEMBER = re.compile(r'[^;]+?(?:\(\*(\w+)\)\([^;]*\)|(\w+)(?:\[\w*\])?);')
ENUM = re.compile(r'^enum(?: \w+)? \{(.*?)\};', re.MULTILINE | re.DOTALL)
CONSTANT = re.compile(r'(\w+)\s*(?:=[^,]*)?(?:,|$)')
MACRO = re.compile(r'^#define (HVD_\w+) +\S', re.MULTILINE)


def in_one_line(text):
    return ' '.join(text.split())


def read_headers(root):
    """Returns the text of the public headers without comments."""
    texts = [open(os.path.join(root, name), encoding='utf-8').read() for name in HEADERS]
    return re.sub(r'/\*.*?\*/|//[^\n]*', ' ', '\n'.join(texts), flags=re.DOTALL)


def exports(library):
    """Returns {function: its version} of the library; the version is '' if it has none."""
    listed = subprocess.run(['readelf', '--wide', '--dyn-syms', library], check=True, text=True,
                            stdout=subprocess.PIPE).stdout
    found = {}
    for line in listed.split('\n'):
        fields = line.split()
        if len(fields) >= 8 and fields[3] == 'FUNC' and fields[4] == 'GLOBAL' and fields[6] != 'UND':
            name, _, version = fields[7].partition('@@')
            found[name] = version
    return found


def measure(root, compiler, lines):
    """Compiles and runs a program that prints a line for each (format, arguments)."""
    with tempfile.TemporaryDirectory() as folder:
        source, program = os.path.join(folder, 'abi.c'), os.path.join(folder, 'abi')
        with open(source, 'w', encoding='utf-8') as file:
            file.write('#include <stdio.h>\n#include <stddef.h>\n#include "hvd.h"\nint main(void)\n{\n')
            file.writelines(f'    printf("{form}\\n", {arguments});\n' for form, arguments in lines)
            file.write('    return 0;\n}\n')
        subprocess.run([*compiler, f'-I{root}/collectives', f'-I{root}/gpu_binding/base', source, '-o', program],
                       check=True)
        return subprocess.run([program], check=True, text=True, stdout=subprocess.PIPE).stdout.splitlines()


def describe_data(text):
    """Returns the lines of measure() for structs and constants."""
    lines = []
    for tag, body in STRUCT.findall(text):
        lines.append((f'struct {tag}: %zu bytes', f'sizeof(struct {tag})'))
        for member in MEMBER.finditer(body):
            name = member[1] or member[2]
            lines.append((f'struct {tag}, {in_one_line(member[0]).rstrip(";")}: at %zu, %zu bytes',
                          f'offsetof(struct {tag}, {name}), sizeof(((struct {tag} *)0)->{name})'))
    names = [name for body in ENUM.findall(text) for name in CONSTANT.findall(body)] + MACRO.findall(text)
    # The number of constants of an enum grows with it.
    lines += [(f'constant {name} = %lld', f'(long long){name}') for name in names if not name.endswith('_COUNT')]
    return lines


def describe(root, library, compiler):
    """Returns the interface as lines, in the order of the headers."""
    text = read_headers(root)
    versions = exports(library)
    lines = [f'{versions.pop(match[1], "not exported:")} {in_one_line(match[0])}' for match in FUNCTION.finditer(text)]
    lines += [f'{version} {name}, which hvd.h does not declare' for name, version in sorted(versions.items())]
    return lines + measure(root, compiler, describe_data(text))


def is_open(root, version):
    """Tells whether no release has this node yet: HVD_0.1 is that of the releases 0.1.x."""
    with open(os.path.join(root, 'contrib/docs/CHANGELOG.md'), encoding='utf-8') as file:
        released = re.findall(r'^## (\d+\.\d+)(?:\.\d+)?(.*)', file.read(), re.MULTILINE)
    return not any(version == f'HVD_{number}' and 'not yet released' not in rest for number, rest in released)


def read_list(root):
    with open(os.path.join(root, LIST), encoding='utf-8') as file:
        return [line for line in file.read().splitlines() if not line.startswith('#')]


def report(checks):
    """Prints checks of (promise, lines that break it, what to do); returns the exit status."""
    for number, (promise, wrong, remedy) in enumerate(checks, 1):
        print(f'{"not ok" if wrong else "ok"} {number} - {promise}')
        for line in [*wrong, remedy] if wrong else []:
            print('#', line)
    print(f'1..{len(checks)}')
    return 1 if any(wrong for _, wrong, _ in checks) else 0


def main(arguments):
    is_writing = arguments[0] == '--write'
    root, library, *compiler = arguments[is_writing:]
    if sys.maxsize < 2**32:
        print('1..0 # SKIP the list is for 64-bit machines')
        return 0
    found = describe(root, library, compiler)
    if is_writing:
        with open(os.path.join(root, LIST), 'w', encoding='utf-8') as file:
            file.write(HEAD + '\n'.join(found) + '\n')
        return 0
    listed = read_list(root)
    gone = [line for line in listed if line not in found]
    new = [line for line in found if line not in listed]
    known = {line.split()[0] for line in listed}
    closed = [line for line in new if line.startswith('HVD_') and line.split()[0] in known
              and not is_open(root, line.split()[0])]
    misfits = [line for line in found if not re.match(r'(HVD_\d+\.\d+ .*\);|struct .*|constant .*)$', line)]
    write = f'python3 {" ".join([__file__, "--write", *arguments])}'
    return report([
        ('each function of hvd.h is exported with a version, and no other', misfits,
         f'add the function to {MAP}, or declare it in hvd.h'),
        ('nothing was removed or changed', gone,
         'programs that were built against this would crash: keep it, and add a new function or struct beside it. '
         f'Only what no release has may change: {write}'),
        ('new functions are in the node of a new release', closed,
         f'a release has this node, so older libraries of this node lack the function: add a node to {MAP}'),
        ('the list has all of the interface', new, f'add it to the list: {write}'),
    ])


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
