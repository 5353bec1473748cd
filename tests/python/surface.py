# SPDX-License-Identifier: Apache-2.0
"""Compares every name of Horovod 0.28.1 with this package, and prints a table of the results.

    python3 surface.py [--markdown] [--python INTERPRETER]...

The folder surface/ has a stub for each module of Horovod, with its names, arguments and defaults.
The program looks for each name in the package. It cannot check two kinds of claims in the stubs,
@better(WHAT, TEST) and @refused(WHY, TEST), so each must name a module of tests. With several
interpreters, one for each framework, the first one that can import a module inspects it.

  works         exists with these arguments and defaults, and a test uses it
  works better  also accepts more arguments, or the stub claims it
  refused       exists, and raises an error that gives the reason
  untested      exists, but no test uses it
  differs       exists with other arguments or defaults
  missing       does not exist
  unseen        no interpreter has the framework
"""

import argparse
import collections
import importlib
import inspect
import json
import os
import pathlib
import re
import subprocess
import sys

import surface_stubs

HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGE = os.path.join(HERE, '..', '..', 'contrib', 'python')
# The modules without which a front end cannot be imported.
FRAMEWORKS = {'horovod': (), 'horovod.torch': ('torch',), 'horovod.tensorflow': ('tensorflow',),
              'horovod.tensorflow.keras': ('tensorflow',),
              'horovod.keras': ('keras', 'tensorflow'), 'horovod.mxnet': ('mxnet',)}
FRONT_ENDS = list(FRAMEWORKS)
GOOD = ('works', 'works better', 'refused')


def front_end(module):
    """Returns the front end of a module: the longest matching name."""
    return max((each for each in FRONT_ENDS if f'{module}.'.startswith(f'{each}.')), key=len,
               default='horovod')


# --- one name ------------------------------------------------------------------------------


def find(module, name):
    """Returns the object with a dotted name, or None for an attribute that only instances have.
    AttributeError if there is none."""
    owner, found = None, module
    for part in name.split('.'):
        owner = found
        if inspect.isclass(owner) and not hasattr(owner, part) and _is_set_by(owner, part):
            return None  # an attribute of instances
        found = getattr(owner, part)
    return found


def _is_set_by(kind, attribute):
    """Whether instances have the attribute: a class annotates it, or a method mentions it."""
    functions = [each for base in kind.__mro__ for each in vars(base).values()
                 if inspect.isfunction(each)]
    return any(attribute in vars(base).get('__annotations__', {}) for base in kind.__mro__) or any(
        attribute in each.__code__.co_names for each in functions)


def difference(found, entry, module):
    """Returns two texts: how the arguments differ from Horovod's, and which additional ones there
    are. A text is '' if there is nothing to say."""
    parameters = list(inspect.signature(found).parameters.values())
    names = [each.name for each in parameters]
    for place, (name, default, is_keyword) in enumerate(entry.arguments):
        if name not in names:
            return f'no argument {name}', ''
        if not is_keyword and names.index(name) != place:
            return f'{name} is argument {names.index(name)}, not {place}', ''
        own = parameters[names.index(name)].default
        if default is not None and own != eval(default, dict(vars(module))):
            return f'{name}={own!r}, not {default}', ''
    known = {argument[0] for argument in entry.arguments}
    more = [each for each in parameters if each.name not in known]
    needed = [each.name for each in more if each.default is each.empty
              and each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)]
    if needed:
        return f'needs {", ".join(needed)}', ''
    return '', ', '.join(str(each).split('=')[0] for each in more)


def judge(module, entry, tests):
    """Returns (verdict, note) for one name."""
    try:
        found = find(module, entry.name)
    except AttributeError:
        return 'missing', ''
    more = ''
    if entry.value is not None and found != eval(entry.value):
        return 'differs', f'is {found!r}, not {entry.value}'
    if entry.arguments is not None:
        try:
            wrong, more = difference(found, entry, module)
        except (NameError, ValueError, TypeError) as error:
            wrong = f'cannot be compared: {error}'
        if wrong:
            return 'differs', wrong
    if not tests.use(module.__name__, entry.name):
        return 'untested', ''
    if entry.claim:
        verdict, note, test = entry.claim
        return (verdict, note) if tests.has(test) else ('untested', f'{note}: no {test}')
    return ('works better', f'also takes {more}') if more else ('works', '')


class Tests:
    """The texts of the tests, each together with the texts of the test modules that it imports, to
    find out which test uses a name."""

    def __init__(self, directory):
        own = {path.relative_to(directory): path.read_text()
               for path in pathlib.Path(directory).rglob('*.py')
               if not path.name.startswith('surface')}
        self._names = {path.stem for path in own}
        self._texts = ['\n'.join([text, *(own[other] for other in own
                                          if _imports(path, text, other))])
                       for path, text in own.items()]

    def has(self, name):
        return name in self._names

    def use(self, module, name):
        """Whether a test of the front end uses the name, or a reference suite lists it."""
        end = front_end(module)
        last = re.escape(name.split('.')[-1])
        word = re.compile(rf'(\.|import .*\b|import \([^)]*\b){last}\b')
        listed = re.compile(rf"'{last}'")
        return any(word.search(text) or ('(ReferenceTest)' in text and listed.search(text))
                   for text in self._texts if re.search(rf'\b{re.escape(end)}\b(?!\.keras)', text))


def _imports(path, text, other):
    """Whether the file imports the other one, by its path or as a file of the same folder."""
    names = ['.'.join(other.with_suffix('').parts)]
    if other.parent == path.parent:
        names.append(other.stem)
    name = '|'.join(map(re.escape, names))
    return re.search(rf'^(from ({name}) import|import ({name})$)', text, re.MULTILINE) is not None


# --- all names -----------------------------------------------------------------------------


def look(module_name, entries, tests):
    """Inspects a module; returns {name: (verdict, note)}, or None if the framework is missing.
    ImportError if the package itself cannot be imported for another reason."""
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name in FRAMEWORKS[front_end(module_name)]:
            return None
        if not (error.name or '').startswith('horovod'):
            raise
        return {entry.name: ('missing', '') for entry in entries}
    return {entry.name: judge(module, entry, tests) for entry in entries}


def look_at_all():
    tests = Tests(HERE)
    return {module: look(module, entries, tests)
            for module, entries in surface_stubs.read(os.path.join(HERE, 'surface')).items()}


def ask(python):
    """Runs this program with an interpreter; returns its answer."""
    env = dict(os.environ, PYTHONDONTWRITEBYTECODE='1')
    env['PYTHONPATH'] = os.pathsep.join(filter(None, [PACKAGE, env.get('PYTHONPATH')]))
    answer = subprocess.run([python, os.path.abspath(__file__), '--json'], env=env, check=True,
                            stdout=subprocess.PIPE, text=True).stdout
    return json.loads(answer.splitlines()[-1])


def merged(answers):
    """Merges the answers of several interpreters: the first one that has inspected a module
    counts."""
    result = {}
    for module, entries in surface_stubs.read(os.path.join(HERE, 'surface')).items():
        seen = [answer[module] for answer in answers if answer[module] is not None]
        result[module] = seen[0] if seen else {entry.name: ('unseen', '') for entry in entries}
    return result


def rows(answer):
    """Returns {name: {front end: (verdict, note)}}, with names relative to the front end."""
    table = collections.defaultdict(dict)
    for module, names in answer.items():
        end = front_end(module)
        prefix = module[len(end) + 1:]
        for name, verdict in names.items():
            table[f'{prefix}.{name}' if prefix else name][end] = verdict
    return table


def print_table(table, markdown):
    heads = ['name'] + [end.replace('horovod.', '') for end in FRONT_ENDS]
    lines = [[f'`{name}`' if markdown else name,
              *(cells.get(end, ('',))[0] for end in FRONT_ENDS)]
             for name, cells in sorted(table.items(), key=lambda row: row[0].lower())]
    widths = [max(map(len, column)) for column in zip(heads, *lines)]
    if markdown:
        lines.insert(0, ['-' * width for width in widths])
    for line in [heads] + lines:
        cells = [cell.ljust(width) for cell, width in zip(line, widths)]
        print(f'| {" | ".join(cells)} |' if markdown else '  '.join(cells).rstrip())


def print_notes(table, markdown):
    """Prints the notes, and how many names have each verdict."""
    notes = collections.defaultdict(list)
    counts = {end: collections.Counter() for end in FRONT_ENDS}
    for name, cells in sorted(table.items()):
        for end, (verdict, note) in cells.items():
            counts[end][verdict] += 1
            if note:
                notes[name, verdict, note].append(end.replace('horovod.', ''))
    print()
    for (name, verdict, note), ends in notes.items():
        start = f'- `{name}`' if markdown else name
        print(f'{start} ({", ".join(ends)}) {verdict}: {note}')
    print()
    for end, verdicts in counts.items():
        start = '- ' if markdown else ''
        print(f'{start}{end}: ' + ', '.join(f'{count} {verdict}'
                                            for verdict, count in sorted(verdicts.items())))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--markdown', action='store_true')
    parser.add_argument('--python', action='append', metavar='INTERPRETER')
    parser.add_argument('--json', action='store_true', help='what this interpreter sees')
    arguments = parser.parse_args()
    if arguments.json:
        print(json.dumps(look_at_all()))
        return
    table = rows(merged([ask(python) for python in arguments.python or [sys.executable]]))
    print_table(table, arguments.markdown)
    print_notes(table, arguments.markdown)


if __name__ == '__main__':
    main()
