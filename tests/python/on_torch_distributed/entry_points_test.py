# SPDX-License-Identifier: Apache-2.0
"""The entry points, which an install by meson and a wheel share, name existing functions."""

import ast
import configparser
import os
import unittest

PACKAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), *[os.pardir] * 3, 'contrib',
                       'python')
GROUPS = ('torch.backends', 'torch.distributed.backends')


def entry_points():
    parser = configparser.ConfigParser(delimiters='=')
    with open(os.path.join(PACKAGE, 'metadata', 'entry_points.txt')) as file:
        parser.read_file(file)
    return {group: dict(parser[group]) for group in parser.sections()}


class EntryPoints(unittest.TestCase):

    def test_torch_finds_the_backend_in_either_group(self):
        for group in GROUPS:
            self.assertEqual(list(entry_points()[group]), ['hvd'])

    def test_entry_points_name_existing_functions(self):
        for group in entry_points().values():
            for place in group.values():
                module, function = place.split(':')
                with open(os.path.join(PACKAGE, *module.split('.')) + '.py') as file:
                    names = [each.name for each in ast.parse(file.read()).body
                             if isinstance(each, ast.FunctionDef)]
                self.assertIn(function, names)
