# SPDX-License-Identifier: Apache-2.0
"""The package hvd is an alias of horovod: both names give the same modules."""

import os
import pathlib
import pickle
import subprocess
import sys
import tempfile
import unittest

import horovod
import horovod.torch
import horovod.torch.elastic
import hvd
import hvd.torch as front_end
from horovod.common import absent, alias
from hvd.torch.elastic import sampler

PACKAGES = str(pathlib.Path(horovod.__file__).parent.parent)


def run(*arguments, path=PACKAGES):
    """Runs Python and returns its exit status, its output and its errors."""
    result = subprocess.run([sys.executable, *arguments], env=dict(os.environ, PYTHONPATH=path),
                            capture_output=True, text=True, check=False)
    return result.returncode, result.stdout, result.stderr


class Alias(unittest.TestCase):

    def test_modules_are_those_of_horovod(self):
        self.assertIs(hvd, horovod)
        self.assertIs(front_end, horovod.torch)
        self.assertIs(sampler, horovod.torch.elastic.sampler)
        status, _, errors = run('-c', 'import hvd.torch.elastic.state, sys\n'
                                      'import horovod.torch.mpi_ops, hvd.torch.mpi_ops\n'
                                      'for name in [*sys.modules]:\n'
                                      '    if name.split(".")[0] == "hvd":\n'
                                      '        own = sys.modules["horovod" + name[3:]]\n'
                                      '        assert sys.modules[name] is own, name')
        self.assertEqual((0, ''), (status, errors))

    def test_modules_keep_their_own_names(self):
        self.assertEqual('horovod.torch', front_end.__name__)
        self.assertEqual('horovod.torch', front_end.__spec__.name)
        self.assertEqual('horovod.torch.elastic.sampler', sampler.__spec__.name)

    def test_classes_are_pickled_by_the_name_of_horovod(self):
        dumped = pickle.dumps(front_end.Compression.fp16)
        self.assertNotIn(b'hvd', dumped)
        self.assertIs(horovod.torch.Compression.fp16, pickle.loads(dumped))

    def test_modules_that_horovod_lacks_cannot_be_imported(self):
        for name in ('hvd.nonsense', 'hvd.torch.nonsense'):
            with self.assertRaises(ModuleNotFoundError) as raised:
                __import__(name)
            self.assertEqual(name, raised.exception.name)
        with self.assertRaises(absent.AbsentModuleError):
            __import__('hvd.runner.gloo_run')

    def test_modules_run_as_programs(self):
        self.assertEqual(run('-m', 'horovod.runner', '--help'), run('-m', 'hvd.runner', '--help'))

    def test_a_horovod_of_another_place_is_an_import_error(self):
        with tempfile.TemporaryDirectory() as directory:
            other = pathlib.Path(directory, 'horovod')
            other.mkdir()
            other.joinpath('__init__.py').touch()
            _, _, errors = run('-c', 'import hvd.torch', path=f'{directory}:{PACKAGES}')
            self.assertIn(f'ImportError: Python imports the package horovod in '
                          f'{os.path.realpath(directory)}, not the one of hvd in ', errors)
            self.assertIn('hvd-info --python', errors)

    def test_a_name_that_only_begins_alike_is_left_alone(self):
        finder = alias._Alias('hvd', 'horovod')
        self.assertIsNone(finder.find_spec('hvdx.torch'))
        self.assertIsNone(finder.find_spec('hvd'))
