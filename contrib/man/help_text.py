# SPDX-License-Identifier: Apache-2.0
"""Reads what a program of hvd prints for --help, which is the only list of its options: man pages and completions are
made from it.

A line that begins in the first column opens a section if it ends with a colon or stands alone; others are its
paragraphs. A line that is indented by two to four blanks opens an entry, TERM and two blanks and text; lines that are
indented further continue the text.
"""

import dataclasses
import re
import subprocess

ENTRY = re.compile(r'( {2,4})(-.*?|\S+(?: \S+)?)(?: {2,}(\S.*))?$')
CONTINUED = re.compile(r' {8,}(\S.*)')


@dataclasses.dataclass
class Entry:
    """An option, or another word that a section explains."""
    term: str
    text: list  # lines
    depth: int  # blanks before it
    column: int  # where its text begins

    def names(self):
        """Returns [(name, argument)] of an option: '-np N, --num-proc N' gives [('-np', 'N'), ('--num-proc', 'N')]."""
        found = (re.match(r'(--?[\w-]+)(?:\[=(.*)\]|[ =](.*))?$', each) for each in re.split(r', (?=-)', self.term))
        return [(each[1], each[2] or each[3] or '') for each in found if each]

    def is_option(self):
        return self.term.startswith('-')


@dataclasses.dataclass
class Section:
    title: str
    parts: list  # Entry, or a paragraph as a list of lines


def read(text):
    """Returns the usage, as lines, and the sections. The first section has no title."""
    usage, rest = re.split(r'\n(?=\S)', text.strip('\n'), maxsplit=1)
    sections = [Section('', [])]
    last = ''
    for line in rest.split('\n'):
        add(sections, line, not last)
        last = line.strip()
    return usage.rstrip().split('\n'), sections


def add(sections, line, is_new):
    """Adds a line to the last section; is_new: it follows an empty line."""
    parts = sections[-1].parts
    indent = len(line) - len(line.lstrip())
    open_entry = parts[-1] if parts and isinstance(parts[-1], Entry) and not is_new else None
    entry = entry_of(line, open_entry.column if open_entry else 0)
    if not line.strip():
        return
    if open_entry and indent >= 8 and indent >= open_entry.column:
        open_entry.text.append(line.strip())
    elif entry and indent < 8:
        parts.append(entry)
    elif is_new and is_title(line):
        sections.append(Section(line.rstrip(':'), []))
    elif is_new or not parts or isinstance(parts[-1], Entry):
        parts.append([line.strip()])
    else:
        parts[-1].append(line.strip())


def entry_of(line, column):
    """Returns the entry that a line begins, or None. column: where the text of the entry before it begins; a long term
    may end one blank before."""
    indent = len(line) - len(line.lstrip())
    if 2 <= indent <= 4 and line[column - 1:column + 1].strip() == line[column:column + 1].strip() != '':
        return Entry(line[:column].strip(), [line[column:]], indent, column)
    found = ENTRY.match(line)
    if not found or not (found[3] or found[2].startswith('-')):
        return None
    return Entry(found[2], [found[3]] if found[3] else [], indent, found.start(3) if found[3] else column or 20)


def is_title(line):
    return line.endswith(':') or not re.search(r'[.;,]', line)


def of(program):
    """Returns the usage and the sections of a program."""
    return read(subprocess.run([program, '--help'], check=True, text=True, stdout=subprocess.PIPE).stdout)
