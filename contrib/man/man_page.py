# SPDX-License-Identifier: Apache-2.0
"""Writes a manual page with scdoc, from the text that explains its subject elsewhere.

usage: man_page.py SCDOC program VERSION PROGRAM SENTENCE      what a program prints for --help
       man_page.py SCDOC header VERSION HVD_H                  the functions of hvd.h
       man_page.py SCDOC template VERSION FILE [NAME=FILE]...  a page with @NAME@, each replaced by a list of words:
                                                               the output of `srun --help`, a table of a page in
                                                               Markdown (FILE#HEADING), or the variables of env.h
       man_page.py functions HVD_H                             prints the names of the functions
"""

import os
import re
import subprocess
import sys

import help_text

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'docs'))
import variables  # noqa: E402  the module of the page variables.md

PROTOTYPE = r'^(?:const )?[\w ]+[ *]hvd_\w+\([^;{]*\);[^\n]*\n'
# A comment, and the prototypes below it; a comment of one line may stand between these.
FUNCTION = re.compile(rf'(?:^/\*((?:(?!\*/).)*)\*/\n)?({PROTOTYPE}(?:(?:^/\*[^\n]*\*/\n)?{PROTOTYPE})*)',
                      re.DOTALL | re.MULTILINE)
PART = re.compile(r'^/\* --- (.+?) -{3,}', re.MULTILINE)


def escape(text):
    return re.sub(r'([\\_*#`<>])', r'\\\1', text)


def paragraph(lines):
    """Joins lines; a line must not begin with a character that scdoc reads as markup."""
    return re.sub(r'^([-.|\[\]~])', r'\\\1', escape(' '.join(lines)))


def literal(lines, indent=''):
    return [indent + '```', *(indent + line for line in lines), indent + '```', '']


def head(name, section, version, sentence):
    return [f'{name}({section}) "" "hvd {version}"', '', '# NAME', '', f'{escape(name)} - {escape(sentence)}', '']


# --- programs ---

def argument_of(term, name, argument):
    if not argument:
        return ''
    if f'{name}[=' in term:
        return f'[=_{escape(argument)}_]'
    return ('=' if f'{name}={argument}' in term else ' ') + f'_{escape(argument)}_'


def term_of(entry):
    """An option's names are bold, their arguments underlined; an optional argument is in brackets."""
    if not entry.is_option():
        return '*' + escape(entry.term) + '*'
    return ', '.join(f'*{escape(name)}*' + argument_of(entry.term, name, argument) for name, argument in entry.names())


def entry_lines(entry):
    tabs = '\t' if entry.depth > 2 else ''
    return [tabs + term_of(entry), *([tabs + '\t' + paragraph(entry.text)] if entry.text else []), '']


def program(version, path, sentence):
    name = os.path.basename(path)
    usage, sections = help_text.of(path)
    lines = head(name, 1, version, sentence) + ['# SYNOPSIS', '']
    lines += literal([re.sub(r'^[Uu]sage: ', '', usage[0]), *usage[1:]]) + ['# DESCRIPTION', '']
    entries = False
    for section in sections:
        if section.title:
            lines += ['# OPTIONS', ''] if not entries else []
            lines += ['## ' + escape(section.title), '']
            entries = True
        for part in section.parts:
            if isinstance(part, list):
                lines += [paragraph(part), '']
                continue
            lines += ['# OPTIONS', ''] if not entries else []
            entries = True
            lines += entry_lines(part)
    return lines + ['# SEE ALSO', '', '*hvd*(7), *hvdrun*(1), *hvd-info*(1), *hvd-bench*(1), *spank\\_hvd*(8)']


# --- hvd.h ---

def comment_lines(text):
    return [re.sub(r'^ ?\* ?', '', line.strip()) if number else line.strip() for number, line in enumerate(text.split('\n'))]


def prose(lines):
    """Text as paragraphs; indented parts, which are tables and code, stay as they are."""
    result, block = [], []
    for line in [*lines, '']:
        if line.strip():
            block.append(line.rstrip())
            continue
        if block:
            is_literal = all(each.startswith('  ') for each in block) or any('   ' in each.strip() for each in block)
            result += literal(block) if is_literal else [paragraph(block), '']
        block = []
    return result


def header(version, path):
    with open(path, encoding='utf-8') as file:
        text = file.read()
    introduction = re.search(r'/\* The C interface(.*?)\*/', text, re.DOTALL)
    lines = head('hvd.h', 3, version, 'collectives among the ranks of a job')
    lines += ['# SYNOPSIS', '', *literal(['#include <hvd.h>', '', 'cc train.c $(pkg-config --cflags --libs hvd)'])]
    lines += ['# DESCRIPTION', '', *prose(comment_lines('The C interface' + introduction[1]))]
    places = [(found.start(), found[1]) for found in PART.finditer(text)]
    begin = text.index('extern "C"')
    for number, (start, title) in enumerate(places):
        end = places[number + 1][0] if number + 1 < len(places) else len(text)
        lines += ['# ' + escape(title.upper()), '']
        for found in FUNCTION.finditer(text, max(start, begin), end):
            lines += literal(found[2].rstrip().split('\n')) + prose(comment_lines(found[1] or ''))
    return lines


def functions(path):
    """Returns the names of the functions, each of which has a link to the page."""
    with open(path, encoding='utf-8') as file:
        return sorted(set(re.findall(r'[ *](hvd_\w+)\(', re.sub(r'/\*.*?\*/', '', file.read(), flags=re.DOTALL))))


# --- templates ---

def words_of_srun(text):
    """Returns (words, explanation) of srun's help for --hvd: "words: on, off (TEXT); verbose (TEXT)"."""
    return re.findall(r'([^;()]+) \(([^)]*)\)(?:; )?', text[text.index('words: ') + 7:])


def words_of_table(text, heading):
    """Returns the rows of the first table below a heading of a page."""
    table = re.search(r'^#+ ' + re.escape(heading) + r'$.*?^\|[^\n]*\n\|[-|]+\n((?:\|[^\n]*\n)+)', text, re.DOTALL | re.MULTILINE)
    rows = [re.split(r'(?<!\\)\|', line.strip().strip('|'), maxsplit=1) for line in table[1].strip().split('\n')]
    return [(plain(word).strip('` '), plain(what).strip()) for word, what in rows]


def plain(text):
    """Removes Markdown's links and its marks of code."""
    return re.sub(r'`', '', re.sub(r'\[([^\]]*)\]\([^)]*\)', r'\1', text)).replace('\\|', '|')


def words_of_variables(text):
    for section in variables.read_sections(text):
        for comment, names in section.rows:
            yield ', '.join(names), plain(variables.plain(comment))


def word_list(source):
    path, _, heading = source.partition('#')
    with open(path, encoding='utf-8') as file:
        text = file.read()
    if heading:
        rows = words_of_table(text, heading)
    else:
        rows = words_of_variables(text) if path.endswith('.h') else words_of_srun(text)
    return ''.join(f'*{escape(word.strip())}*\n\t{paragraph([what])}\n\n' for word, what in rows).rstrip('\n')


def template(version, path, *sources):
    with open(path, encoding='utf-8') as file:
        text = file.read().replace('@VERSION@', version)
    for source in sources:
        name, _, where = source.partition('=')
        text = text.replace(f'@{name}@', word_list(where))
    return text.rstrip('\n').split('\n')


def without_empty_paragraphs(lines):
    """Removes the paragraphs without text that scdoc 1.11 writes around headings and blocks, and which mandoc reports."""
    for number in range(len(lines) - 1):
        if lines[number:number + 2] == ['.P', '.RE']:
            lines[number:number + 2] = ['.RE', '.P']
    kept = []
    for line, following in zip(lines, [*lines[1:], '']):
        if line == '.P' and (re.match(r'\.(S[HS] |P$)', following) or kept and re.match(r'\.(S[HS] |P$|TH )', kept[-1])):
            continue
        kept.append(line)
    while kept[-1] in ('', '.P'):
        kept.pop()
    return kept


def main():
    if sys.argv[1] == 'functions':
        print('\n'.join(functions(sys.argv[2])))
        return
    scdoc, kind, *arguments = sys.argv[1:]
    lines = {'program': program, 'header': header, 'template': template}[kind](*arguments)
    page = subprocess.run([scdoc], check=True, text=True, input='\n'.join(lines) + '\n', stdout=subprocess.PIPE).stdout
    print('\n'.join(without_empty_paragraphs(page.split('\n'))))


if __name__ == '__main__':
    main()
