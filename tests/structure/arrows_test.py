# SPDX-License-Identifier: Apache-2.0
"""Includes follow the layers, and chains of includes are short.

usage: arrows_test.py SOURCE_ROOT"""

import os
import sys

import sources

# The folders that each folder may include, beside itself: only folders further up in this list.
BASE = ['gpu_binding/base']
BOOT = BASE + ['pmix_boot', 'pmix_boot/sock']
TRANSPORT = [f'collectives/transport/{name}' for name in ('connect', 'control', 'net', 'shm')]
ALLOWED = {
    'gpu_binding/base': [],
    'gpu_binding': BASE,
    'gpu_binding/agent': BASE + ['gpu_binding'],
    'pmix_boot/sock': BASE,
    'pmix_boot/rendezvous': BASE + ['pmix_boot/sock'],
    'pmix_boot': BASE + ['pmix_boot/sock', 'pmix_boot/rendezvous'],
    'pmix_boot/hvdrun': BOOT + ['pmix_boot/rendezvous', 'gpu_binding'],
    'spank': BASE + ['gpu_binding', 'gpu_binding/agent', 'pmix_boot', 'pmix_boot/rendezvous'],
    'collectives': BASE, # hvd.h
    'collectives/reduce': BASE + ['collectives'],
    'collectives/stack': BASE,
    'collectives/tuner': BASE,
    'collectives/transport/connect': BASE + ['pmix_boot/sock'],
    'collectives/transport/net': BASE + ['pmix_boot/sock', 'collectives/transport/connect'],
    'collectives/transport/net/ucx': BASE + ['collectives/transport/net'],
    'collectives/transport/shm': BASE,
    'collectives/transport/control': BOOT + ['collectives/transport/connect', 'collectives/transport/shm'],
    'collectives/request': BASE + ['collectives'],
    'collectives/set': BOOT + ['collectives', 'collectives/request', 'collectives/transport/control'],
    'collectives/agreement': BOOT + ['collectives', 'collectives/request', 'collectives/set',
                                     'collectives/transport/control'],
    'collectives/trace': BOOT + ['collectives', 'collectives/request', 'collectives/transport/control'],
    # Pure: from the transport it uses only the sizes of shared memory.
    'collectives/schedule': BOOT + ['collectives/transport/shm'],
    'collectives/run': BOOT + ['collectives', 'collectives/reduce', 'collectives/request', 'collectives/schedule',
                                'collectives/set'] + TRANSPORT,
    'collectives/gpu': BOOT + ['collectives', 'collectives/reduce', 'collectives/request', 'collectives/run',
                               'collectives/schedule', 'collectives/set', 'collectives/trace',
                               'collectives/transport/net'],
    'collectives/p2p': BOOT + ['collectives', 'collectives/request', 'collectives/set'] + TRANSPORT,
    'collectives/gpu/module': BASE + ['collectives/gpu', 'collectives/reduce'],
}
ALLOWED['collectives/core'] = BOOT + TRANSPORT + [
    'gpu_binding/agent', 'collectives', 'collectives/agreement', 'collectives/gpu', 'collectives/p2p', 'collectives/trace',
    'collectives/reduce', 'collectives/request', 'collectives/run', 'collectives/schedule', 'collectives/set',
    'collectives/stack', 'collectives/tuner']
ALLOWED['collectives/api'] = ALLOWED['collectives/core'] + ['collectives/core', 'pmix_boot/rendezvous']

MOST_DEEP = 7
MOST_IN_API = 20
MOST_GLOBAL = 4


def wrong_arrows(tree):
    """Returns the includes that the layers forbid. contrib is above all of them, and below tests."""
    for file in tree.files:
        folder = os.path.dirname(file)
        for header in tree.includes(file):
            target = os.path.dirname(header)
            allowed = target in ALLOWED.get(folder, []) or target == folder or \
                folder.startswith('contrib/') and not header.startswith('tests/')
            if not allowed:
                yield f'{file} includes {header}'


def names_of_global_set(tree):
    """Returns the files that name the global set: most folders treat it like other sets, or ask for its
    special properties (set/set.h)."""
    return [f'{file}: {count}' for file in tree.files if file.startswith('collectives/') and
            os.path.dirname(file) not in ('collectives', 'collectives/api', 'collectives/set')
            for count in [tree.text(file).count('HVD_SET_GLOBAL')] if count]


def unknown_folders(tree):
    folders = {os.path.dirname(file) for file in tree.files if not file.startswith('contrib/')}
    return [f'{folder} is not listed in {os.path.basename(__file__)}' for folder in
            sorted(folders - ALLOWED.keys())]


def main(root):
    tree = sources.Tree(root)
    special = names_of_global_set(tree)
    deep = [' > '.join([file] + tree.chain(file)) for file in tree.files
            if not file.startswith('contrib/') and len(tree.chain(file)) > MOST_DEEP]
    wide = [f'{file}: {len(tree.reached(file))}' for file in tree.files
            if file.startswith('collectives/api/') and len(tree.reached(file)) > MOST_IN_API]
    return sources.report([
        ('includes follow the arrows of the layers', list(wrong_arrows(tree))),
        ('each folder is in the list of layers', unknown_folders(tree)),
        (f'at most {MOST_GLOBAL} files name the global set, each of them once',
         special if len(special) > MOST_GLOBAL or any(not each.endswith(': 1') for each in special) else []),
        (f'no chain of includes has more than {MOST_DEEP} headers', deep),
        (f'no file of collectives/api sees more than {MOST_IN_API} headers', wide),
    ])


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:]))
