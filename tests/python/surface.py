# SPDX-License-Identifier: Apache-2.0
"""Every name of Horovod 0.28.1 against the package that is here: a table of what becomes of it.

    python3 surface.py [--markdown] [--python INTERPRETER]...

The names, arguments and defaults are in surface/: a stub for each of Horovod's modules. For each,
the package is asked (inspect); nothing is taken on trust but the stubs' claims @better(WHAT, TEST)
and @refused(WHY, TEST), each of which must name a module of tests. With several interpreters, one
for each framework, a module is looked at with the first that can import it.

  works         is there, with these arguments and defaults, and a test uses it
  works better  also takes more, or the stub claims it
  refused       is there to say why not
  untested      is there, but no test uses it
  differs       is there with other arguments or defaults
  missing       is not there
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
# Without one of these modules there is no such front end; keras alone imports TensorFlow by itself.
FRAMEWORKS = {'horovod': (), 'horovod.torch': ('torch',), 'horovod.tensorflow': ('tensorflow',),
              'horovod.tensorflow.keras': ('tensorflow',),
              'horovod.keras': ('keras', 'tensorflow'), 'horovod.mxnet': ('mxnet',)}
FRONT_ENDS = list(FRAMEWORKS)
GOOD = ('works', 'works better', 'refused')


def front_end(module):
    """The front end that a module belongs to: the longest name that fits."""
    return max((each for each in FRONT_ENDS if f'{module}.'.startswith(f'{each}.')), key=len,
               default='horovod')


# --- one name ------------------------------------------------------------------------------


def find(module, name):
    """The object with a dotted name; AttributeError."""
    owner, found = None, module
    for part in name.split('.'):
        owner = found
        if inspect.isclass(owner) and not hasattr(owner, part) and _is_set_by(owner, part):
            return None  # an attribute of instances
        found = getattr(owner, part)
    return found


def _is_set_by(kind, attribute):
    """Whether instances have it: annotated, or assigned by a method."""
    functions = [each for base in kind.__mro__ for each in vars(base).values()
                 if inspect.isfunction(each)]
    return any(attribute in vars(base).get('__annotations__', {}) for base in kind.__mro__) or any(
        attribute in each.__code__.co_names for each in functions)


def difference(found, entry, module):
    """How the arguments differ, and which more there are; each '' for none."""
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
    """The pair (verdict, note) of one name."""
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
    """The texts of the tests, each with those of the tests' modules that it imports: who uses
    what."""

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
        """Whether a test of the front end calls it by name, or a reference suite lists it."""
        end = front_end(module)
        last = re.escape(name.split('.')[-1])
        word = re.compile(rf'(\.|import .*\b|import \([^)]*\b){last}\b')
        listed = re.compile(rf"'{last}'")
        return any(word.search(text) or ('(ReferenceTest)' in text and listed.search(text))
                   for text in self._texts if re.search(rf'\b{re.escape(end)}\b(?!\.keras)', text))


def _imports(path, text, other):
    """Whether the file imports the other one, by its path or as a neighbour."""
    names = ['.'.join(other.with_suffix('').parts)]
    if other.parent == path.parent:
        names.append(other.stem)
    name = '|'.join(map(re.escape, names))
    return re.search(rf'^(from ({name}) import|import ({name})$)', text, re.MULTILINE) is not None


# --- all names -----------------------------------------------------------------------------


def look(module_name, entries, tests):
    """{name: (verdict, note)}; None: the framework is not here. ImportError where the package
    itself cannot be imported, also for lack of anything else."""
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
    """What an interpreter says."""
    env = dict(os.environ, PYTHONDONTWRITEBYTECODE='1')
    env['PYTHONPATH'] = os.pathsep.join(filter(None, [PACKAGE, env.get('PYTHONPATH')]))
    answer = subprocess.run([python, os.path.abspath(__file__), '--json'], env=env, check=True,
                            stdout=subprocess.PIPE, text=True).stdout
    return json.loads(answer.splitlines()[-1])


def merged(answers):
    """One answer of several: of each module the first that was seen."""
    result = {}
    for module, entries in surface_stubs.read(os.path.join(HERE, 'surface')).items():
        seen = [answer[module] for answer in answers if answer[module] is not None]
        result[module] = seen[0] if seen else {entry.name: ('unseen', '') for entry in entries}
    return result


def rows(answer):
    """{name: {front end: (verdict, note)}}, names relative to the front end."""
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
    """The reasons, and how many names have which verdict."""
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
