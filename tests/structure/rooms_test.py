# SPDX-License-Identifier: Apache-2.0
"""Each folder of sources has a README that says what it owns, which file to read first, and which
threads may call; the files that it names exist.

usage: rooms_test.py SOURCE_ROOT"""

import os
import re
import sys

ROOMS = ('collectives', 'gpu_binding', 'pmix_boot', 'spank')
MODULES = ('collectives/transport/net/ucx',)  # described by the folder above
MOST_LINES = 25
PARTS = ('Owns ', 'Read first: ', 'Threads: ')


def folders(root):
    """Returns the folders with sources, relative to the root."""
    for room in ROOMS:
        for path, _, files in os.walk(os.path.join(root, room)):
            folder = os.path.relpath(path, root)
            if folder not in MODULES and any(file.endswith('.c') for file in files):
                yield folder


def problems(root, folder):
    path = os.path.join(root, folder, 'README.md')
    if not os.path.exists(path):
        return [f'{folder} has no README.md']
    with open(path, encoding='utf-8') as file:
        text = file.read()
    found = [f'{folder}/README.md has no paragraph "{part.strip()}"' for part in PARTS
             if not re.search(f'^{part}', text, re.M)]
    found += [f'{folder}/README.md names {name}, which does not exist'
              for name in re.findall(r'`([\w./]+(?:\.[ch]|/))`', text)
              if not os.path.exists(os.path.join(root, folder, name))]
    if text.count('\n') > MOST_LINES:
        found.append(f'{folder}/README.md has more than {MOST_LINES} lines')
    return found


def main():
    found = [each for folder in sorted(folders(sys.argv[1]))
             for each in problems(sys.argv[1], folder)]
    print('ok' if not found else 'not ok', '1 - each folder of sources has a complete README')
    for each in found:
        print('#', each)
    print('1..1')
    return bool(found)


sys.exit(main())
