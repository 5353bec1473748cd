#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""docs_test.py SOURCE_ROOT: README and contrib/docs agree with the sources and with each other."""

import glob
import os
import re
import subprocess
import sys

root = sys.argv[1]
count = 0
failed = 0


def report(is_ok, promise, found=''):
    global count, failed
    count += 1
    failed += not is_ok
    print(f'{"ok" if is_ok else "not ok"} {count} - {promise}')
    for line in str(found).split('\n') if found and not is_ok else []:
        print(f'# {line}')


def read(*path):
    with open(os.path.join(root, *path)) as file:
        return file.read()


docs = sorted(os.path.basename(path) for path in glob.glob(f'{root}/contrib/docs/*.md'))
pages = {'README.md': read('README.md')}
pages.update({f'contrib/docs/{name}': read('contrib', 'docs', name) for name in docs})


def check_variables():
    """The page is what the script makes of env.h, and env.h has what pages and Python name."""
    header = read('gpu_binding', 'base', 'env.h')
    made = subprocess.run([sys.executable, f'{root}/contrib/docs/variables.py',
                           f'{root}/gpu_binding/base/env.h'], stdout=subprocess.PIPE,
                          universal_newlines=True)
    report(made.returncode == 0 and made.stdout == pages['contrib/docs/variables.md'],
           'variables.md is what variables.py makes of env.h',
           'contrib/docs/variables.py gpu_binding/base/env.h >contrib/docs/variables.md')

    known = set(re.findall(r'"(\w+)"', header))
    families = tuple(re.findall(r'HVD_ENV_FAMILY_(?!ALL)\w+\s+"(\w+)"', header))
    interface = set(re.findall(r'\bHVD_\w+', read('collectives', 'hvd.h')))
    interface |= set(re.findall(r'\bHVD_\w+', read('gpu_binding', 'base', 'hvd_status.h')))
    present = {page: text for page, text in pages.items() if not page.endswith('CHANGELOG.md')}
    named = {(name, page) for page, text in present.items()
             for name in re.findall(r'\b(?:HVD|HOROVOD)_[A-Z0-9_]+\b', text)
             if not name.startswith('HVD_TEST_')}
    unknown = sorted(f'{page}: {name}' for name, page in named
                     if name not in known | interface and not name.startswith(families))
    report(not unknown, 'env.h has every variable that a page names', '\n'.join(unknown))

    python = {(name, os.path.relpath(path, root))
              for path in glob.glob(f'{root}/contrib/python/horovod/**/*.py', recursive=True)
              for name in re.findall(r"environ\b[^\n']*'([A-Z][A-Z0-9_]+)'", read(path))}
    unknown = sorted(f'{path}: {name}' for name, path in python if name not in known)
    report(not unknown, 'env.h has every variable that the Python package reads', '\n'.join(unknown))


def anchors(text):
    return {re.sub(r'[^\w -]', '', title.lower()).replace(' ', '-')
            for title in re.findall(r'^#+ (.*)$', text, re.MULTILINE)}


def check_links():
    dead = []
    for page, text in pages.items():
        for target in re.findall(r'\]\(([^)\s]+)\)', text):
            path, _, anchor = target.partition('#')
            if '://' in target:
                continue
            file = os.path.normpath(os.path.join(os.path.dirname(page), path)) if path else page
            if not os.path.exists(os.path.join(root, file)) or (
                    anchor and anchor not in anchors(pages.get(file, ''))):
                dead.append(f'{page}: {target}')
    report(not dead, 'links lead to files and headings', '\n'.join(dead))

    unread = [name for name in docs if f'contrib/docs/{name}' not in pages['README.md']]
    report(not unread, 'README leads to every page', ' '.join(unread))
    left_out = [name for name in docs if f"'{name}'" not in read('contrib', 'docs', 'meson.build')]
    report(not left_out, 'every page is installed', ' '.join(left_out))


def check_sizes():
    lines = pages['README.md'].count('\n')
    report(lines <= 100, 'README has at most 100 lines', lines)
    words = len(re.findall(r'^\| (?!word|---)', pages['contrib/docs/glossary.md'], re.MULTILINE))
    report(0 < words <= 40, 'the glossary has at most 40 words', words)


check_variables()
check_links()
check_sizes()
print(f'1..{count}')
sys.exit(failed > 0)
