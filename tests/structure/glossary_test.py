# SPDX-License-Identifier: Apache-2.0
"""contrib/docs/glossary.md explains the words in the names of types, struct hvd_WORD_WORD.

Words that mean in hvd what they mean in plain English, or in any program in C, are listed here
instead. A plural counts as its singular.

usage: glossary_test.py SOURCE_ROOT"""

import os
import re
import sys

import sources

PLAIN = '''
address answer arrival awaited block bucket buffer build byte cached call cell change choice collect
column command config connect convert count creation decided device done door entry env environment
error event fact factor failure file float fork formed handler hash head header history id identity
info input item key kind level library line link list look loop mapping mark matrix memory missing
module named network note notice offer offset opening option order outcome output own pair part passing
piece port position query question queued range reader reason record recording refcount refused
register repeated report round row rule run runtime scope score section service setting setup shape
share shutdown source start submitted sum symbol table tail talk target term time timed timing
verdict wait waiter waiting wish word work writer
'''.split()

LEFT_OUT = ('contrib/bench/', 'contrib/examples/')

_TAG = re.compile(r'\bstruct (hvd_\w+)\s*\{')
_ROW = re.compile(r'^\| ([^|]+) \| ([^|]*) \| ([^|]*)\|$', re.M)
_TYPE = re.compile(r'`struct (\w+)`')
_REFERENCE = re.compile(r'\[([^\]]+)\](?!\()')
_LINK = re.compile(r'^\[([^\]]+)\]: https://\S+$', re.M)


def singular(word):
    if word.endswith('sses'):
        return word[:-2]
    return word[:-1] if word.endswith('s') and not word.endswith('ss') else word


def tags(texts):
    """{tag: file} of the types that the sources define."""
    return {tag: file for file, text in texts.items() for tag in _TAG.findall(sources.strip(text))}


def words_of(found):
    """{word: a tag that has it}."""
    return {singular(word): tag for tag in sorted(found) for word in tag.split('_')[1:]}


def entries(page):
    """The rows of the tables: (words, meaning, where it is defined)."""
    return [row for row in _ROW.findall(page) if row[0] not in ('word', '---')]


def explained(page):
    return {singular(word) for row in entries(page) for word in re.findall(r'[a-z0-9]+', row[0].lower())}


def unexplained(found, page, plain):
    """One line for each word that neither the page nor the list has."""
    known = explained(page) | set(plain)
    return [f'{word}, in {tag}: explain it in contrib/docs/glossary.md' for word, tag in
            sorted(words_of(found).items()) if word not in known]


def unknown_types(found, page):
    return [f'{", ".join(row[:1])}: there is no struct {tag}' for row in entries(page)
            for tag in _TYPE.findall(row[2]) if tag not in found]


def wrong_plain_words(found, page, plain):
    """The list is sorted, and has no word that the page explains or that no type has."""
    lines = [f'{after} is not in its place' for before, after in zip(plain, plain[1:]) if before >= after]
    lines += [f'{word} is in the glossary, too' for word in plain if word in explained(page)]
    return lines + [f'no type has {word} in its name' for word in plain if word not in words_of(found)]


def wrong_links(page):
    """References without an address, and addresses that no entry uses."""
    used = {name for row in entries(page) for name in _REFERENCE.findall(row[2])}
    return sorted(f'[{name}]' for name in used ^ set(_LINK.findall(page)))


SMALL = {'a.h': 'struct hvd_rank_rows {\n};\nstruct hvd_odd_thing {\n};\n/* struct hvd_no { */\n'}
PAGE = '''| word | meaning | defined in |
|---|---|---|
| rank | a process | `struct hvd_rank_rows`, [MPI] |
| thing | a word | `struct hvd_thing`, [X] |

[MPI]: https://www.mpi-forum.org/
'''


def misses():
    """Each check finds the mistake that is planted for it."""
    small = tags(SMALL)
    expected = (
        (unexplained(small, PAGE, ['row']), ['odd, in hvd_odd_thing: explain it in contrib/docs/glossary.md']),
        (unknown_types(small, PAGE), ['thing: there is no struct hvd_thing']),
        (wrong_plain_words(small, PAGE, ['row', 'odd', 'rank', 'unused']),
         ['odd is not in its place', 'rank is in the glossary, too', 'no type has unused in its name']),
        (wrong_links(PAGE), ['[X]']),
    )
    return [f'found {found}, expected {wanted}' for found, wanted in expected if found != wanted]


def main(root):
    tree = sources.Tree(root)
    found = tags({file: tree.text(file) for file in tree.files if not file.startswith(LEFT_OUT)})
    with open(os.path.join(root, 'contrib', 'docs', 'glossary.md'), encoding='utf-8') as file:
        page = file.read()
    return sources.report([
        ('planted mistakes are found', misses()),
        ('the glossary explains each word in the name of a type', unexplained(found, page, PLAIN)),
        ('each type that the glossary names exists', unknown_types(found, page)),
        ('the list of plain words is sorted and has none too many', wrong_plain_words(found, page, PLAIN)),
        ('each reference of the glossary has an address', wrong_links(page)),
    ])


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:]))
