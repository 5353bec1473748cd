#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The tables of troubleshooting.md below "Error messages" have each error and warning of hvd, and no other.

usage: errors_test.py SOURCE_ROOT

The first cell of a row is a pattern: <word> stands for what differs from case to case (%s, {name}), and … for
any text. EXEMPT says which errors need no row."""

import ast
import glob
import re
import sys

PAGE = 'contrib/docs/troubleshooting.md'
FOLDERS = ('gpu_binding', 'pmix_boot', 'collectives', 'spank', 'contrib/info', 'contrib/python')

# A status or an exception, and why its texts need no row. hvd-bench is not searched: its errors are about its own
# options and files.
ARGUMENT = 'names an argument, option or variable, and says what is expected'
EXEMPT = {
    'HVD_ERR_ARG': ARGUMENT,
    'ValueError': ARGUMENT,
    'TypeError': ARGUMENT,
    'AttributeError': ARGUMENT,
    'NotImplementedError': 'names what is not supported',
    'AssertionError': 'cannot happen',
}

GAP = '\0'  # where a text differs from case to case
FEWEST_LETTERS = 8  # of a text that needs a row; "%s: %s" only joins other texts
MOST_TEXTS = 6  # that a row may stand for
TOKEN = re.compile(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'|/\*.*?\*/|\w+|\s+|.', re.DOTALL)
CONVERSION = re.compile(r'%[-+ #0]*(?:\d+|\*)?(?:\.(?:\d+|\*))?(?:hh|h|ll|l|z)?[a-zA-Z]')
C_CALL = re.compile(rf'\b(?:hvd_fail|slurm_error|warn_of|hvd_log \( HVD_LOG_(?:WARN|ERROR)|fprintf \( stderr)\b'
                    rf'[^{GAP}]*(?:{GAP} :)?$')
PYTHON_CALLS = ('warn', '_warn', '_say')
ESCAPES = {'\\n': '\n', '\\"': '"', '\\\\': '\\'}

C_SAMPLE = '''
    return hvd_fail(err, HVD_ERR_SYS, "cannot read %.100s"
                    " of " HVD_ENV_SAMPLE ": %m", path); /* "no text" */
    return hvd_fail(err, HVD_ERR_ARG, "expected a number, found %s", text);
    hvd_log(HVD_LOG_WARN, is_late ? "this is late" : "this is early");
    hvd_log(HVD_LOG_INFO, "this is news");
'''
PYTHON_SAMPLE = '''
raise ValueError(f'expected a number, found {text}')
raise RuntimeError(f'cannot read {path}: '
                   f'{reason}')
warnings.warn('%s is too old' % name)
'''
NEEDY_SAMPLES = [f'cannot read {GAP} of SAMPLE: {GAP}', 'this is late', 'this is early',
                 f'cannot read {GAP}: {GAP}', f'{GAP} is too old']


class Text:
    """A string of the sources."""

    def __init__(self, where, words, needs_row):
        self.where = where
        self.words = re.sub(f'{GAP}+', GAP, words.strip())
        self.needs_row = needs_row and letters(self.words) >= FEWEST_LETTERS

    def __str__(self):
        shown = self.words.replace(GAP, '<...>').replace('\n', ' ')
        return f'{self.where}: {shown}'


def letters(words):
    return len(re.findall('[A-Za-z]', words))


def env_names(root):
    """Returns {HVD_ENV_NAME: value} of env.h."""
    with open(f'{root}/gpu_binding/base/env.h') as header:
        return dict(re.findall(r'#define (HVD_ENV_\w+)\s+(?:\\\s+)?"(\w+)"', header.read()))


def part_of(token, names, is_inside):
    """Returns what a token adds to a string, or None if it is not part of one."""
    if token[0] == '"':
        return re.sub(r'\\.', lambda found: ESCAPES.get(found[0], found[0]), token[1:-1])
    if token in names:
        return names[token]
    if is_inside and re.match(r'[A-Z]\w+$', token):
        return 'd' if token.startswith('PRI') else GAP
    return None


def c_texts(name, source, names):
    """Yields the strings of a file in C. Adjacent strings are one."""
    words, statement, line = '', '', 1
    for token in (found[0] for found in TOKEN.finditer(source.replace('\\\n', ' \n'))):
        line += token.count('\n')
        if token.isspace() or token.startswith('/*'):
            continue
        part = part_of(token, names, words != '')
        if part is not None:
            words += part
            continue
        if words:
            is_error = C_CALL.search(statement) and not any(word in statement for word in EXEMPT)
            yield Text(f'{name}:{line}', CONVERSION.sub(GAP, words).replace('%%', '%'), is_error)
            statement += GAP
            words = ''
        statement = '' if token in ';{}' else f'{statement} {token}'


def python_words(node):
    """Returns the texts that an expression in Python can have, as far as they are written in it."""
    if isinstance(node, ast.Constant):
        return [node.value] if isinstance(node.value, str) else []
    if isinstance(node, ast.JoinedStr):
        return [''.join(part.value if isinstance(part, ast.Constant) else GAP for part in node.values)]
    if isinstance(node, ast.IfExp):
        return python_words(node.body) + python_words(node.orelse)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
        return [CONVERSION.sub(GAP, words) for words in python_words(node.left)]
    return []


def python_texts(name, source):
    """Yields the strings of a file in Python."""
    for node in ast.walk(ast.parse(source)):
        for words in python_words(node):
            yield Text(f'{name}:{node.lineno}', words, False)
        call = node.exc if isinstance(node, ast.Raise) else node
        if not isinstance(call, ast.Call) or not call.args:
            continue
        callee = getattr(call.func, 'attr', getattr(call.func, 'id', '?'))
        is_error = callee[0].isupper() and callee not in EXEMPT if isinstance(node, ast.Raise) else (
            callee in PYTHON_CALLS)
        if is_error:
            for words in python_words(call.args[0]):
                yield Text(f'{name}:{node.lineno}', words, True)


def texts(root):
    """Yields the strings of all sources."""
    names = env_names(root)
    for path in sorted(path for folder in FOLDERS for path in glob.glob(f'{root}/{folder}/**', recursive=True)):
        if not path.endswith(('.c', '.h', '.py')):
            continue
        name = path[len(root) + 1:]
        with open(path, encoding='utf-8') as file:
            source = file.read()
        yield from python_texts(name, source) if path.endswith('.py') else c_texts(name, source, names)


def patterns(text):
    """Returns {first cell: regular expression} of the rows of tables."""
    found = {}
    for cell in re.findall(r'^\| `(.*?)` \|', text, re.MULTILINE):
        parts = [re.escape(part).replace('\\ ', r'\s+') for part in re.sub('<[^>]*>', GAP, cell).split('…')]
        found[cell] = re.compile('.*'.join(parts), re.DOTALL)
    return found


def report(number, promise, wrong):
    print(f'{"not ok" if wrong else "ok"} {number} - {promise}')
    for each in wrong:
        print(f'# {each}')
    return not wrong


def needy_samples():
    samples = [*c_texts('sample.c', C_SAMPLE, {'HVD_ENV_SAMPLE': 'SAMPLE'}), *python_texts('sample.py', PYTHON_SAMPLE)]
    return [text.words for text in samples if text.needs_row]


def main():
    root = sys.argv[1]
    with open(f'{root}/{PAGE}', encoding='utf-8') as file:
        kinds, areas = file.read().split('\n## Error messages\n')[1].split('\n### ', 1)
    known = list(texts(root))
    needy = [text for text in known if text.needs_row]
    rows = patterns(areas)
    every = {**patterns(kinds), **rows}
    missing = [text for text in needy if not any(row.fullmatch(text.words) for row in every.values())]
    stale = [cell for cell, row in every.items() if not any(row.fullmatch(text.words) for text in known)]
    vague = [cell for cell, row in rows.items()
             if len({text.words for text in needy if row.fullmatch(text.words)}) > MOST_TEXTS]
    are_good = [report(1, 'every error and warning has a row in troubleshooting.md', missing),
                report(2, 'every row of troubleshooting.md is a text of the sources', stale),
                report(3, f'no row stands for more than {MOST_TEXTS} texts', vague),
                report(4, 'errors and warnings are found in C and Python',
                       [] if needy_samples() == NEEDY_SAMPLES else needy_samples())]
    print(f'1..{len(are_good)}')
    sys.exit(not all(are_good))


if __name__ == '__main__':
    main()
