# SPDX-License-Identifier: Apache-2.0
"""An install by meson and a wheel have the same entry points, which name existing functions."""

import ast
import configparser
import os
import re
import unittest

PACKAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), *[os.pardir] * 3, 'contrib',
                       'python')
GROUPS = ('torch.backends', 'torch.distributed.backends')
TABLE = re.compile(r'^\[project\.entry-points\."([\w.]+)"\]\n((?:[^\[\n].*\n)*)', re.MULTILINE)


def of_the_installation():
    parser = configparser.ConfigParser(delimiters='=')
    with open(os.path.join(PACKAGE, 'metadata', 'entry_points.txt')) as file:
        parser.read_file(file)
    return {group: dict(parser[group]) for group in parser.sections()}


def of_the_wheel():
    """Returns the entry points of the wheel. Parses the tables itself, because Python before 3.11
    cannot read TOML."""
    with open(os.path.join(PACKAGE, 'pyproject.toml')) as file:
        tables = TABLE.findall(file.read())
    lines = re.compile(r'^(\w+) = "(.*)"$', re.MULTILINE)
    return {group: dict(lines.findall(body)) for group, body in tables}


class EntryPoints(unittest.TestCase):

    def test_install_and_wheel_have_the_same_entry_points(self):
        self.assertEqual(of_the_installation(), of_the_wheel())

    def test_torch_finds_the_backend_in_either_group(self):
        for group in GROUPS:
            self.assertEqual(list(of_the_installation()[group]), ['hvd'])

    def test_entry_points_name_existing_functions(self):
        for group in of_the_installation().values():
            for place in group.values():
                module, function = place.split(':')
                with open(os.path.join(PACKAGE, *module.split('.')) + '.py') as file:
                    names = [each.name for each in ast.parse(file.read()).body
                             if isinstance(each, ast.FunctionDef)]
                self.assertIn(function, names)
