# SPDX-License-Identifier: Apache-2.0
"""Names in C use the words of contrib/docs/CONTRIBUTING.md, each only in the folders where it has that meaning.

usage: words_test.py SOURCE_ROOT"""

import os
import re
import sys

import sources

# A word, the folders whose names may use it, and the words to use elsewhere.
WORDS = (
    ('lane', ('collectives/reduce',), ('queue', 'priority', 'slice')),
    ('proposal', (), ('descriptor',)),
    ('readiness', (), ('ready table',)),
    ('repetition', (), ('period',)),
    ('tensor_cache', (), ('response cache',)),
    ('absent', (), ('zeros',)),
    ('stand_in', (), ('zeros',)),
    ('carrier', (), ('transport', 'owner')),
    ('engine', ('contrib/python/native/mxnet',), ('job',)),
    ('doorbell', (), ('wake-up',)),
    ('bell', (), ('wake-up',)),
    ('kick', (), ('notify',)),
    ('doze', (), ('timed wait',)),
    ('card', ('collectives/core', 'collectives/gpu', 'collectives/transport', 'pmix_boot', 'collectives/api'), ('nic',)),
    ('wire', ('collectives', 'contrib/python'), ('sock',)),
    ('meeting', (), ('rendezvous',)),
    ('guest', (), ('extra rank',)),
    ('seat', (), ('coordinates',)),
)
# The same for names of types, constants and exported functions only: hvd_...
EXPORTED = (
    ('place', (), ('location', 'address', 'path', 'position')),
    ('exchange', (), ('modex',)),
    ('void', (), ('cancelled',)),
    ('messages', ('collectives/schedule', 'collectives/transport'), ('p2p',)),
)
OTHERS = ('HVD_ENV_MXNET_ENGINE',) # a variable of another program
LEFT_OUT = ('contrib/bench', 'contrib/examples')
MOST_SHOWN = 40

_NAME = re.compile(r'\b[A-Za-z_]\w*\b')


def pattern(word):
    return re.compile(rf'(?:^|_){word}s?(?:_|$)', re.I)


def is_under(file, folders):
    return any(file.startswith(folder + '/') for folder in folders)


def wrong(tree, words, begins):
    """Returns a line for each name with a word that its folder must not use."""
    patterns = [(pattern(word), folders, instead) for word, folders, instead in words]
    found = {}
    for file in tree.files:
        if is_under(file, LEFT_OUT):
            continue
        for name in set(_NAME.findall(sources.strip(tree.text(file)))):
            if not name.startswith(begins) or name in OTHERS:
                continue
            for at, folders, instead in patterns:
                if at.search(name) and not is_under(file, folders):
                    found.setdefault(name, (file, instead))
    lines = [f'{file}: {name}: say {" or ".join(instead)}' for name, (file, instead) in sorted(found.items())]
    more = [f'and {len(lines) - MOST_SHOWN} more'] if len(lines) > MOST_SHOWN else []
    return lines[:MOST_SHOWN] + more


def unknown(root):
    """Returns the words to use instead that CONTRIBUTING lacks."""
    with open(os.path.join(root, 'contrib', 'docs', 'CONTRIBUTING.md'), encoding='utf-8') as file:
        table = file.read()
    words = {word for _, _, instead in WORDS + EXPORTED for word in instead}
    return [f'CONTRIBUTING.md lacks "{word}"' for word in sorted(words) if word not in table]


def main(root):
    tree = sources.Tree(root)
    return sources.report([
        ('names use the words of their folder', wrong(tree, WORDS, '')),
        ('types, constants and exported functions use these words, too', wrong(tree, EXPORTED, ('hvd_', 'HVD_'))),
        ('CONTRIBUTING.md has the words', unknown(root)),
    ])


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:]))
