# SPDX-License-Identifier: Apache-2.0
"""Every test of the Python package can fail: it asserts something, or calls a function of the tests
that asserts something."""

import ast
import pathlib
import textwrap
import unittest

HERE = pathlib.Path(__file__).parent


def called(node):
    """Yields the names of the functions and methods that the node calls."""
    for each in ast.walk(node):
        if isinstance(each, ast.Call):
            if isinstance(each.func, ast.Attribute):
                yield 'assertFalse' if each.func.attr == 'fail' else each.func.attr
            elif isinstance(each.func, ast.Name):
                yield each.func.id


def functions_of(tree):
    """Yields the functions of the module and the methods of its classes, but no inner functions."""
    for each in tree.body:
        if isinstance(each, ast.FunctionDef):
            yield each
        elif isinstance(each, ast.ClassDef):
            yield from functions_of(each)


def imported(tree):
    """Yields the names of the modules that a file imports."""
    for each in ast.walk(tree):
        if isinstance(each, ast.ImportFrom):
            yield each.module
            yield from (f'{each.module}.{alias.name}' for alias in each.names)
        elif isinstance(each, ast.Import):
            yield from (alias.name for alias in each.names)


class Functions:
    """The functions of several files, and which of them assert something. ``sources``: {name of the
    module: its text}."""

    def __init__(self, sources):
        trees = {module: ast.parse(text) for module, text in sources.items()}
        self._imports = {module: set(imported(tree)) & set(trees)
                         for module, tree in trees.items()}
        for _ in trees:  # a base class may come from a module that an imported module imports
            for others in self._imports.values():
                others.update(*(self._imports[other] for other in others))
        self._nodes = [(module, each) for module, tree in trees.items()
                       for each in functions_of(tree)]
        self._names = {(module, each.name) for module, each in self._nodes}
        self._checks, before = set(), None
        while self._checks != before:  # a check may call another one
            before = set(self._checks)
            self._checks |= {(module, each.name) for module, each in self._nodes
                             if self._asserts(module, each)}

    def _asserts(self, module, node):
        return (any(isinstance(each, ast.Assert) for each in ast.walk(node))
                or any(name.startswith('assert') or self._checks_by(module, name)
                       for name in called(node)))

    def _checks_by(self, module, name):
        """Whether the function that the module calls by this name asserts something. A function of
        the module itself hides imported ones."""
        if (module, name) in self._names:
            return (module, name) in self._checks
        return any((other, name) in self._checks for other in self._imports[module])

    def idle_tests(self):
        """Returns the tests that cannot fail."""
        return sorted(f'{module}: {each.name}' for module, each in self._nodes
                      if each.name.startswith('test_') and not self._asserts(module, each))


class Assertions(unittest.TestCase):

    def test_every_test_asserts_something(self):
        sources = {}
        for path in HERE.rglob('*.py'):
            *folders, _ = path.relative_to(HERE).parts
            if folders[:1] != ['surface']:
                on_path = [each for each in folders if not each.startswith('on_')]
                sources['.'.join([*on_path, path.stem])] = path.read_text()
        self.maxDiff = None
        self.assertEqual(Functions(sources).idle_tests(), [])

    def test_tests_that_assert_nothing_are_found(self):
        texts = {'some_test': '''
            from base import Case
            class Some(Case):
                def test_nothing(self):
                    self.train()
                    self.skip()
                def test_itself(self):
                    self.assertEqual(1, 1)
                def test_a_statement(self):
                    assert compute()
                def test_a_check_of_a_check(self):
                    self.check_twice(compute())
                def test_a_check_of_the_base(self):
                    self.check(3)
                def check_twice(self, result):
                    self.check(result)
                def train(self):
                    compute()
                def skip(self):
                    self.skipTest('never')
            ''', 'base': '''
            class Case(unittest.TestCase):
                def check(self, result):
                    self.assertTrue(result)
            ''', 'other': '''
            def train(result):
                assert result
            '''}
        functions = Functions({name: textwrap.dedent(text) for name, text in texts.items()})
        self.assertEqual(functions.idle_tests(), ['some_test: test_nothing'])
