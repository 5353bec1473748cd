# SPDX-License-Identifier: Apache-2.0
"""Names, arguments and defaults of finished front ends are Horovod's (surface.py has the list)."""

import unittest

import surface
import surface_stubs


class Surface(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.seen = surface.look_at_all()

    def check(self, module):
        names = self.seen[module]
        if names is None:
            self.skipTest(f'this Python does not import {module}')
        for name, (verdict, note) in names.items():
            with self.subTest(name=f'{module}.{name}'):
                self.assertIn(verdict, surface.GOOD, note)

    def test_what_is_finished_has_all_of_horovods_names(self):
        for module in surface.FINISHED:
            self.check(module)

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


if __name__ == '__main__':
    unittest.main()
