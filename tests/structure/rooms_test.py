# SPDX-License-Identifier: Apache-2.0
"""Each folder of sources has a README that says what the folder does, which file to read first, and
which threads may call its functions; the files that the README names exist.

usage: rooms_test.py SOURCE_ROOT"""

import os
import re
import sys

ROOMS = ('collectives', 'contrib/info', 'gpu_binding', 'pmix_boot', 'spank')
MODULES = ('collectives/transport/net/ucx',)  # described by the folder above
MOST_LINES = 25
PARTS = ('Read first: ', 'Threads: ')
LEAST_WORDS = 10  # of the paragraph below the title


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
    first = re.match(r'# [^\n]+\n\n(?!Read first|Threads)((?:[^\n]+\n)+)', text)
    if not first or len(first[1].split()) < LEAST_WORDS:
        found.append(f'{folder}/README.md does not say below its title what the folder does')
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
