# SPDX-License-Identifier: Apache-2.0
"""Comments, docstrings and texts are plain English: no riddles, no line beyond column 90, a verb for each function.

usage: comments_test.py SOURCE_ROOT [FOLDER...]   only these folders; all by default"""

import ast
import collections
import os
import re
import sys
import tempfile
import tokenize

TOPS = ('gpu_binding', 'pmix_boot', 'collectives', 'spank', 'contrib', 'tests')
COLUMNS = 90
FEWEST_WORDS = 4 # of a literal that is a text
MOST_SHOWN = 60

Text = collections.namedtuple('Text', 'line words is_of_function')

# How a sentence must not begin, and what to write instead.
BEGINNINGS = (
    (r'(?:Of|Who|Whose|Those|Nobody|Somebody|That)\b', 'begin with the subject: "The ranks that …", "A thread that …"'),
    (r'\bWhat\b(?! happens| to )', 'say what it is: "The bytes that …", "Returns …"'),
    (r'Where\b[^,;:.]*\b(?:is|are|was|were)\b(?![^.]*,)', 'say "The location of …", "The address of …"'),
)
# Phrases that make a reader stop.
PHRASES = (
    (r', maybe\.', 'say "perhaps", before the verb'),
    (r'\bmostly (?:is|are|was|were|has|have|does|do|can|will|[a-z]+(?<!s)s)\b', 'say "usually", or when'),
    (r'\bof it\.', 'name the noun'),
)
# Verb forms without a regular ending; is_verb recognises those in -s, -ed and -ing by their ending.
VERBS = set('''is are was were be been am has have had do does did can could may might must shall should will would
goes went gone gets got gives gave given takes took taken makes made puts put sets set lets let keeps kept holds held
finds found says said sends sent reads read writes wrote written runs ran run begins began begun ends lies lay leaves
left means meant needs tells told knows knew known sees saw seen waits comes came come becomes became returns fills
adds frees see post return raise make'''.split())

_C_COMMENT = re.compile(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|(/\*.*?\*/)|((?://[^\n]*(?:\n[ \t]*)?)+)', re.S)
_C_LITERAL = r'"((?:\\.|[^"\\\n])*)"'
_C_TEXT = re.compile(rf'{_C_LITERAL}(?:\s*{_C_LITERAL})*')
_FUNCTION = re.compile(r'\s*(?:HVD_\w+(?:\([^)]*\))?\s+)*[A-Za-z_][\w \t]*[\s*]+\w+\s*\([^;{}]*?\)\s*(?:\w+\([^;{}]*\)\s*)*[;{]')


def of_c(text):
    """The comments of a C source, and its string literals: messages, help and promises of tests."""
    for match in _C_COMMENT.finditer(text):
        comment = match.group(1) or match.group(2)
        if not comment or 'SPDX-License-Identifier' in comment:
            continue
        words = re.sub(r'\s+', ' ', re.sub(r'(?m)^\s*(?:/?\*+/?|//)|\*/$|^/\*', ' ', comment)).strip()
        begins_line = text.rfind('\n', 0, match.start()) + 1 == match.start()
        is_name = words.startswith('---') or len(words.split()) == 1
        yield Text(text.count('\n', 0, match.start()) + 1, words,
                   begins_line and not is_name and bool(_FUNCTION.match(text, match.end())))
    code = re.sub(r'/\*.*?\*/', lambda match: '\n' * match.group().count('\n'), text, flags=re.S)
    for match in _C_TEXT.finditer(code):
        words = ''.join(re.findall(_C_LITERAL, match.group())).replace('\\n', ' ').strip()
        if len(words.split()) >= FEWEST_WORDS:
            yield Text(code.count('\n', 0, match.start()) + 1, words, False)


def of_python(path):
    """The docstrings, string literals and comments of a Python source."""
    with open(path, 'rb') as file:
        tree = ast.parse(file.read())
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    docstrings = set()
    for node in ast.walk(tree):
        if isinstance(node, kinds) and ast.get_docstring(node):
            words = ast.get_docstring(node).split('\n\n')[0]
            yield Text(node.body[0].lineno, re.sub(r'\s+', ' ', words),
                       isinstance(node, kinds[2:]) and not words.startswith('usage'))
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            docstrings.add(node.value)
        elif isinstance(node, ast.Constant) and node not in docstrings and isinstance(node.value, str):
            if len(node.value.split()) >= FEWEST_WORDS:
                yield Text(node.lineno, re.sub(r'\s+', ' ', node.value), False)
    with open(path, 'rb') as file:
        yield from joined([(token.start[0], token.string.lstrip('#').strip(), token.line.lstrip()[:1] == '#')
                           for token in tokenize.tokenize(file.readline) if token.type == tokenize.COMMENT])


def of_shell(text):
    """The comments of a shell script or a meson file."""
    yield from joined([(number, line.strip().lstrip('#').strip(), True)
                       for number, line in enumerate(text.split('\n'), 1)
                       if re.match(r'\s*#(?!!)', line)])


def joined(lines):
    """Returns texts of comments; joins consecutive lines. lines: (number, words, whether they are alone in the line)."""
    texts, last = [], None
    for number, words, is_alone in lines:
        if texts and is_alone and last == number - 1:
            texts[-1] = texts[-1]._replace(words=texts[-1].words + ' ' + words)
        elif not words.startswith(('SPDX', 'shellcheck', 'pylint', 'noqa', 'type:')):
            texts.append(Text(number, words, False))
        last = number
    return texts


def is_verb(word):
    return word in VERBS or bool(re.search(r'(?:[^us]s|ed|ing)$', word))


def complaints(text):
    """Why a text is not plain English, with the remedy."""
    for sentence in re.split(r'(?<=[.!?])\s+(?=[A-Z])', text.words):
        for pattern, instead in BEGINNINGS:
            if re.match(pattern, sentence) and not sentence.endswith('?'):
                yield f'begins with "{sentence.split()[0]}": {instead}'
    for pattern, instead in PHRASES:
        found = re.search(pattern, text.words)
        if found:
            yield f'"{found.group().strip()}": {instead}'
    if text.is_of_function and not any(is_verb(word) for word in re.findall(r"[a-z_']+", text.words.lower())):
        yield 'has no verb: say what the function does'


def long_lines(text):
    """The lines of C comments that end beyond the last column."""
    for match in _C_COMMENT.finditer(text):
        if match.group(1) or match.group(2):
            first = text.count('\n', 0, match.start())
            last = text.count('\n', 0, match.end())
            for number, line in enumerate(text.split('\n')[first:last + 1], first + 1):
                if len(line.rstrip()) > COLUMNS:
                    yield number


def faults(root, folders):
    """One line for each fault: file, line, what is wrong and what to do."""
    for top in folders:
        for folder, _, names in sorted(os.walk(os.path.join(root, top))):
            for name in sorted(names):
                path = os.path.join(folder, name)
                file = os.path.relpath(path, root)
                if os.path.abspath(path) == os.path.abspath(__file__):
                    continue # it has faults on purpose
                if name.endswith(('.c', '.h', '.cu', '.cc')):
                    with open(path, encoding='utf-8') as source:
                        content = source.read()
                    texts = list(of_c(content))
                    yield from (f'{file}:{number}: comment ends beyond column {COLUMNS}: wrap it'
                                for number in long_lines(content))
                elif name.endswith('.py'):
                    texts = list(of_python(path))
                elif name.endswith('.sh') or name == 'meson.build':
                    with open(path, encoding='utf-8') as source:
                        texts = list(of_shell(source.read()))
                else:
                    continue
                yield from (f'{file}:{text.line}: {text.words[:50]!r} {complaint}'
                            for text in texts for complaint in complaints(text))


# Sources with one fault each, in the language of the file name.
PLANTED = (
    ('planted.c', '/* Of those that hosts can. */\n'),
    ('planted.c', '/* Reads the ring. Who found the lock taken looks once more. */\n'),
    ('planted.c', '/* What all local ranks read. */\n'),
    ('planted.c', '/* Where the timeline is. */\n'),
    ('planted.c', '/* The sender has left a message, maybe. */\n'),
    ('planted.c', '/* The last sender mostly brings the next message. */\n'),
    ('planted.c', '/* Takes a message and the rest of it. */\n'),
    ('planted.c', '/* The number of the next call. */\nint next_call(struct calls *calls);\n'),
    ('planted.c', f'/* Returns {"a long name " * 8}*/\n'),
    ('planted.c', 'fail("who waits in vain " "is told why");\nfail("Who waits in vain " "is told why");\n'),
    ('planted.py', 'def next_call():\n    """The number of the next call."""\n'),
    ('planted.py', 'raise ValueError("What is missing says so when called")\n'),
    ('planted.sh', '# Those of the job.\n'),
)
PLAIN = ('/* The largest size, in bytes. */\nenum { LARGEST = 8 };\n'
         '/* Returns the number of the next call. What happens after the last: see calls.h. */\n'
         'int next_call(struct calls *calls);\n')


def has_one(name, content):
    """Whether the check finds exactly one fault in a source."""
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, name), 'w', encoding='utf-8') as file:
            file.write(content)
        return len(list(faults(folder, ['.']))) == 1


def main():
    found = list(faults(sys.argv[1], sys.argv[2:] or TOPS))
    print('1..3')
    for line in found[:MOST_SHOWN]:
        print('# ' + line)
    if len(found) > MOST_SHOWN:
        print(f'# and {len(found) - MOST_SHOWN} more')
    print(('ok' if not found else 'not ok') + ' 1 - comments and texts are plain English')
    missed = [content for name, content in PLANTED if not has_one(name, content)]
    for content in missed:
        print(f'# not found, or not alone: {content!r}')
    print(('ok' if not missed else 'not ok') + ' 2 - a planted fault of each kind is found')
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, 'plain.c'), 'w', encoding='utf-8') as file:
            file.write(PLAIN)
        wrong = list(faults(folder, ['.']))
    for line in wrong:
        print('# ' + line)
    print(('ok' if not wrong else 'not ok') + ' 3 - plain texts have no fault')
    return bool(found or missed or wrong)


if __name__ == '__main__':
    sys.exit(main())
