#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes variables.md from gpu_binding/base/env.h:

    contrib/docs/variables.py gpu_binding/base/env.h >contrib/docs/variables.md

In env.h a comment that begins with "--- TITLE ---" opens a section. Any other comment explains the
names below it; "Default: VALUE." at its end becomes the column of defaults.
"""

import re
import sys

INTRODUCTION = '''\
# Environment variables

This page is for users and administrators who look up a variable: it lists all that hvd reads or
sets. A switch takes 1 or 0. A value that you set yourself has precedence over that of the plugin
and hvdrun, unless a row says otherwise. Developers: `contrib/docs/variables.py` writes this page
from `gpu_binding/base/env.h`.
'''
TOKEN = re.compile(r'/\*(.*?)\*/|^#define HVD_ENV_(\w+)\s+(?:\\\s+)?"(\w+)"', re.DOTALL | re.MULTILINE)
SECTION = re.compile(r'--- (.+?) ---\s*(.*)', re.DOTALL)
DEFAULT = re.compile(r'(.*?)\s*Default: ((?:[^.]|\.\S)+)\.$', re.DOTALL)
PAGE = re.compile(r'\b(\w+\.md)\b')


class Section:
    """A title, the sentences below it, and rows: [comment, [names]]."""

    def __init__(self, title, text):
        self.title = title
        self.text = text
        self.rows = []

    def add(self, comment, name):
        if self.rows and self.rows[-1][0] is comment:
            self.rows[-1][1].append(name)
        else:
            self.rows.append([comment, [name]])


def plain(comment):
    """Returns the text of a comment in one line."""
    return ' '.join(re.sub(r'^\s*\*', '', line).strip() for line in comment.split('\n')).strip()


def read_sections(text):
    """Returns the sections of env.h, in order."""
    sections = []
    comment = None
    for found in TOKEN.finditer(text[text.index('#define HVD_ENV_H'):]):
        if found[1] is None:
            if comment is None:
                sys.exit(f'variables.py: {found[3]} has no comment that says what it is')
            sections[-1].add(comment, found[3] + ('*' if found[2].startswith('FAMILY') else ''))
            continue
        title = SECTION.match(plain(found[1]))
        if title:
            sections.append(Section(title[1], title[2]))
        comment = None if title else plain(found[1])
    return sections


def linked(text):
    return PAGE.sub(r'[\1](\1)', text)


def page(text):
    """Returns env.h as Markdown."""
    parts = [INTRODUCTION]
    for section in read_sections(text):
        parts.append(f'## {section.title}\n')
        if section.text:
            parts.append(f'{linked(section.text)}\n')
        rows = ['| variable | default | meaning |', '|---|---|---|']
        for comment, names in section.rows:
            default = DEFAULT.match(comment)
            meaning = default[1] if default else comment
            rows.append('| {} | {} | {} |'.format(', '.join(f'`{name}`' for name in names),
                                                  default[2] if default else '', linked(meaning)))
        parts.append('\n'.join(rows) + '\n')
    return '\n'.join(parts)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    with open(sys.argv[1]) as header:
        sys.stdout.write(page(header.read()))


if __name__ == '__main__':
    main()
