# SPDX-License-Identifier: Apache-2.0
"""Names, arguments and defaults are those of Horovod, for the frameworks that this Python has."""

import os
import unittest
import unittest.mock

import surface
import surface_stubs


class Surface(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.seen = surface.look_at_all()

    def test_all_names_of_horovod_exist(self):
        for module, names in self.seen.items():
            if names is None:
                continue
            for name, (verdict, note) in names.items():
                with self.subTest(name=f'{module}.{name}'):
                    self.assertIn(verdict, surface.GOOD, note)

    def test_the_front_end_of_the_framework_was_inspected(self):
        framework = os.environ.get('HVD_TEST_NEEDS', 'torch')
        self.assertIsNotNone(self.seen[f'horovod.{framework}'])
        for module, names in self.seen.items():
            needs = surface.FRAMEWORKS[surface.front_end(module)]
            if framework in needs or not needs:
                with self.subTest(module=module):
                    self.assertIsNotNone(names)

    def look(self, module, missing):
        """Inspects a module whose import fails because another module is missing."""
        lack = ModuleNotFoundError(f"No module named '{missing}'", name=missing)
        with unittest.mock.patch('importlib.import_module', side_effect=lack):
            return surface.look(module, [surface_stubs.Entry('name', None, None, None)], None)

    def test_only_a_framework_may_be_missing(self):
        self.assertIsNone(self.look('horovod.torch.elastic', 'torch'))
        self.assertEqual(self.look('horovod.torch', 'horovod.torch'), {'name': ('missing', '')})
        for module, missing in (('horovod.torch', 'numpy'), ('horovod.torch', 'tensorflow'),
                                ('horovod', 'torch'), ('horovod.torch', 'torch.nothing')):
            with self.assertRaises(ModuleNotFoundError):
                self.look(module, missing)

    def judge(self, name, arguments=None, value=None, claim=None, module=surface_stubs):
        entry = surface_stubs.Entry(name, arguments, value, claim)
        return surface.judge(module, entry, surface.Tests(surface.HERE))[0]

    def test_differences_are_found(self):
        self.assertEqual(self.judge('nothing'), 'missing')
        self.assertEqual(self.judge('Entry.nothing'), 'missing')
        self.assertEqual(self.judge('read', [('other', None, False)]), 'differs')
        self.assertEqual(self.judge('read', [('directory', "'here'", False)]), 'differs')
        self.assertEqual(self.judge('read', [('x', None, False), ('directory', None, False)]),
                         'differs')
        self.assertEqual(self.judge('read', []), 'differs')
        self.assertEqual(self.judge('read', value='3'), 'differs')

    def test_names_without_a_test_are_found(self):
        self.assertEqual(self.judge('_claim', [('node', None, False)]), 'untested')
