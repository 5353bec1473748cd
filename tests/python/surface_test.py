# SPDX-License-Identifier: Apache-2.0
"""Names, arguments and defaults are Horovod's, in what this Python has frameworks for."""

import os
import unittest
import unittest.mock

import surface
import surface_stubs


class Surface(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.seen = surface.look_at_all()

    def test_all_of_horovods_names_are_there(self):
        for module, names in self.seen.items():
            if names is None:
                continue
            for name, (verdict, note) in names.items():
                with self.subTest(name=f'{module}.{name}'):
                    self.assertIn(verdict, surface.GOOD, note)

    def test_the_front_end_of_the_framework_was_looked_at(self):
        framework = os.environ.get('HVD_TEST_NEEDS', 'torch')
        self.assertIsNotNone(self.seen[f'horovod.{framework}'])
        for module, names in self.seen.items():
            needs = surface.FRAMEWORKS[surface.front_end(module)]
            if framework in needs or not needs:
                with self.subTest(module=module):
                    self.assertIsNotNone(names)

    def look(self, module, missing):
        """What comes of a module that lacks another one."""
        lack = ModuleNotFoundError(f"No module named '{missing}'", name=missing)
        with unittest.mock.patch('importlib.import_module', side_effect=lack):
            return surface.look(module, [surface_stubs.Entry('name', None, None, None)], None)

    def test_only_a_framework_may_be_lacking(self):
        self.assertIsNone(self.look('horovod.torch.elastic', 'torch'))
        self.assertEqual(self.look('horovod.torch', 'horovod.torch'), {'name': ('missing', '')})
        for module, missing in (('horovod.torch', 'numpy'), ('horovod.torch', 'tensorflow'),
                                ('horovod', 'torch'), ('horovod.torch', 'torch.nothing')):
            with self.assertRaises(ModuleNotFoundError):
                self.look(module, missing)

    def judge(self, name, arguments=None, value=None, claim=None, module=surface_stubs):
        entry = surface_stubs.Entry(name, arguments, value, claim)
        return surface.judge(module, entry, surface.Tests(surface.HERE))[0]

    def test_what_differs_is_seen(self):
        self.assertEqual(self.judge('nothing'), 'missing')
        self.assertEqual(self.judge('Entry.nothing'), 'missing')
        self.assertEqual(self.judge('read', [('other', None, False)]), 'differs')
        self.assertEqual(self.judge('read', [('directory', "'here'", False)]), 'differs')
        self.assertEqual(self.judge('read', [('x', None, False), ('directory', None, False)]),
                         'differs')
        self.assertEqual(self.judge('read', []), 'differs')
        self.assertEqual(self.judge('read', value='3'), 'differs')

    def test_what_no_test_uses_is_seen(self):
        self.assertEqual(self.judge('_claim', [('node', None, False)]), 'untested')
