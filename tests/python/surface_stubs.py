# SPDX-License-Identifier: Apache-2.0
"""Reads the stubs in surface/: Horovod's names, their arguments and defaults."""

import ast
import os
from typing import NamedTuple, Optional


class Entry(NamedTuple):
    """A name of Horovod."""
    name: str  # within the module; CLASS.MEMBER for the member of a class
    arguments: Optional[list]  # (name, default as source text or None, keyword only); None: any
    value: Optional[str]  # the value of a constant, as source text
    claim: Optional[tuple]  # (verdict, reason, module of tests)


def read(directory):
    """Reads the stubs; returns {module: its entries}."""
    modules = {}
    for path, _, names in sorted(os.walk(os.path.join(directory, 'horovod'))):
        for name in sorted(names):
            relative = os.path.relpath(os.path.join(path, name), directory)[:-len('.pyi')]
            module = relative.replace(os.sep, '.')
            if module.endswith('.__init__'):
                module = module[:-len('.__init__')]
            modules[module] = _entries(directory, os.path.join(path, name))
    return modules


def _entries(directory, path):
    with open(path) as file:
        body = ast.parse(file.read(), path).body
    result = []
    for node in body:
        if isinstance(node, ast.ImportFrom):
            result += _imported(directory, node, path)
        else:
            result += _of(node)
    return result


def _imported(directory, node, path):
    """Returns the entries that are imported from another stub, with their members."""
    there = _entries(directory, os.path.join(directory, node.module + '.pyi'))
    wanted = [alias.name for alias in node.names]
    unknown = set(wanted) - {entry.name for entry in there}
    if unknown:
        raise ValueError(f'{path}: {node.module}.pyi has no {", ".join(sorted(unknown))}')
    return [entry for entry in there if entry.name.split('.')[0] in wanted]


def _of(node, owner=''):
    if isinstance(node, ast.FunctionDef):
        return [Entry(owner + node.name, _arguments(node.args), None, _claim(node))]
    if isinstance(node, ast.ClassDef):
        return _class(node)
    if isinstance(node, ast.AnnAssign):
        return [Entry(owner + node.target.id, None, None, None)]
    if isinstance(node, ast.Assign):
        return [Entry(node.targets[0].id, None, ast.unparse(node.value), None)]
    return []  # "..."


def _class(node):
    """Returns the entry of a class, with the arguments of its __init__, and those of its
    members."""
    members = [entry for each in node.body for entry in _of(each, node.name + '.')]
    first = f'{node.name}.__init__'
    own = [entry.arguments[1:] for entry in members if entry.name == first]
    return [Entry(node.name, own[0] if own else None, None, _claim(node)),
            *(entry for entry in members if entry.name != first)]


def _arguments(arguments):
    places = arguments.posonlyargs + arguments.args
    defaults = [None] * (len(places) - len(arguments.defaults)) + arguments.defaults
    result = [(each.arg, _text(default), False) for each, default in zip(places, defaults)]
    if arguments.vararg:
        result.append((arguments.vararg.arg, None, False))
    result += [(each.arg, _text(default), True)
               for each, default in zip(arguments.kwonlyargs, arguments.kw_defaults)]
    if arguments.kwarg:
        result.append((arguments.kwarg.arg, None, True))
    return result


def _text(default):
    return None if default is None else ast.unparse(default)


def _claim(node):
    verdicts = {'better': 'works better', 'refused': 'refused'}
    for decorator in node.decorator_list:
        reason, test = (ast.literal_eval(each) for each in decorator.args)
        return verdicts[decorator.func.id], reason, test
    return None
