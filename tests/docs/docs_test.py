#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""README and contrib/docs agree with the sources and with each other.

usage: docs_test.py SOURCE_ROOT"""

import glob
import os
import re
import subprocess
import sys

from report import end, report

root = sys.argv[1]


def read(*path):
    with open(os.path.join(root, *path)) as file:
        return file.read()


MOST_IN_A_CELL = 165  # characters: two lines of a table in a window of usual width

docs = sorted(os.path.basename(path) for path in glob.glob(f'{root}/contrib/docs/*.md'))
pages = {'README.md': read('README.md')}
pages.update({f'contrib/docs/{name}': read('contrib', 'docs', name) for name in docs})


def check_variables():
    """variables.md is up to date, and env.h lists each variable that a page or Python names."""
    header = read('gpu_binding', 'base', 'env.h')
    made = subprocess.run([sys.executable, f'{root}/contrib/docs/variables.py',
                           f'{root}/gpu_binding/base/env.h'], stdout=subprocess.PIPE,
                          universal_newlines=True)
    report(made.returncode == 0 and made.stdout == pages['contrib/docs/variables.md'],
           'variables.md is up to date with env.h',
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


def check_examples():
    """Users have the examples where they are installed, so the pages name them there."""
    installed = '/opt/hvd/share/hvd/examples'
    users = {page: text for page, text in pages.items() if page not in ('README.md', 'contrib/docs/CONTRIBUTING.md')}
    unknown = [page for page, text in users.items() if 'contrib/examples' in text]
    named = []
    for page, text in users.items():
        named += [(page, path) for path in re.findall(rf'{installed}/([\w/.]+\w)', text)]
        for folder, rows in re.findall(rf'^\| in `{installed}/?(\S*)` .*\n((?:\|.*\n)+)', text, re.MULTILINE):
            named += [(page, os.path.join(folder, path))
                      for path in re.findall(r'^\| `(\S+)`', rows, re.MULTILINE)]
    unknown += [f'{page}: {path}' for page, path in named
                if not os.path.exists(os.path.join(root, 'contrib', 'examples', path))]
    report(named and not unknown, f'the pages name the examples in {installed}', '\n'.join(unknown))

    scripts = {os.path.relpath(path, f'{root}/contrib/examples'): read(path)
               for path in glob.glob(f'{root}/contrib/examples/*/*.py')}
    needy = {path for path, text in scripts.items() if text.startswith('#!')
             and re.search(r'^(from sklearn|import digits)', text, re.MULTILINE)}
    silent = {path for path in needy if not re.search("pip install '?scikit-learn", scripts[path])}
    silent |= {page for page, path in named if path in needy and 'scikit-learn' not in pages[page]}
    report(needy and not silent, 'examples that need scikit-learn, and pages that name them, say so',
           '\n'.join(sorted(silent)))
    plural = [f'{path}: {found}' for path, text in scripts.items()
              for found in re.findall(r'\}(?:\'\n\s+f\')? (?:ranks|nodes)\b.*', text)]
    report(scripts and not plural, 'no example may say "1 nodes" or "1 ranks"', '\n'.join(plural))


def check_torchrun():
    """torchrun accepts --nproc_per_node in every release, and --nproc-per-node not in that of torch 1.13."""
    texts = dict(pages)
    for path in glob.glob(f'{root}/contrib/examples/**/*', recursive=True):
        if os.path.isfile(path):
            texts[os.path.relpath(path, root)] = read(path)
    refused = sorted(name for name, text in texts.items() if '--nproc-per-node' in text)
    report(not refused, 'pages and examples start torchrun with options that every release has',
           ' '.join(refused))


def rendered(cell):
    """A cell of a table as a browser shows it."""
    return re.sub(r'\[([^\]]*)\]\([^)]*\)', r'\1', cell).replace('`', '').strip()


def check_style():
    """variables.md is left out: its cells are the comments of env.h."""
    unnamed = [name for name in docs if not re.match(r'# [^\n]+\n\nThis page is for ',
                                                     pages[f'contrib/docs/{name}'])]
    report(not unnamed, 'every page begins with a sentence about its readers', ' '.join(unnamed))
    long = [f'{page}:{number}: {len(rendered(cell))} characters: {rendered(cell)[:40]}...'
            for page, text in pages.items() if not page.endswith('variables.md')
            for number, line in enumerate(text.split('\n'), 1) if line.startswith('|')
            for cell in re.split(r'(?<!\\)\|', line)[1:-1] if len(rendered(cell)) > MOST_IN_A_CELL]
    report(not long, f'no cell of a table has more than {MOST_IN_A_CELL} characters', '\n'.join(long))


def check_sizes():
    lines = pages['README.md'].count('\n')
    report(lines <= 100, 'README has at most 100 lines', lines)


check_variables()
check_links()
check_examples()
check_torchrun()
check_style()
check_sizes()
end()
