# SPDX-License-Identifier: Apache-2.0
"""The import fails with a clear text if Python or a framework is too old or too new."""

import ast
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

import horovod
from horovod.common import versions
from horovod.common.exceptions import HorovodVersionMismatchError

OLD_PYTHON = '''
import sys
sys.version_info = (3, 7, 16, 'final', 0)
import horovod
'''


# Prints the modules of a front end whose import succeeds or fails with the wrong error.
ALL_MODULES = '''
import importlib, pathlib, sys
import horovod
from horovod.common.exceptions import HorovodVersionMismatchError
package = pathlib.Path(horovod.__file__).parent
paths = sorted(path.relative_to(package.parent) for path in package.joinpath(sys.argv[1]).rglob("*.py"))
assert paths
for name in (".".join(path.with_suffix("").parts) for path in paths):
    try:
        importlib.import_module(name)
        print(name, "can be imported", file=sys.stderr)
    except HorovodVersionMismatchError:
        pass
    except BaseException as error:
        print(name, repr(error), file=sys.stderr)
'''
PACKAGE = pathlib.Path(horovod.__file__).parent


def imported(module, version):
    """Imports a front end with a framework of that version; returns the text of the error."""
    framework = module.split('.')[1]
    return run(f'import {module}', **{framework: f'__version__ = {version!r}'})


def run(script, *arguments, **modules):
    """Runs a script; returns its stderr. ``modules``: sources that replace the modules of these
    names."""
    with tempfile.TemporaryDirectory() as directory:
        for name, source in modules.items():
            pathlib.Path(directory, f'{name}.py').write_text(source + '\n')
        path = os.pathsep.join(filter(None, [directory, os.environ.get('PYTHONPATH', '')]))
        return subprocess.run([sys.executable, '-c', script, *arguments],
                              env=dict(os.environ, PYTHONPATH=path), capture_output=True,
                              text=True, check=False).stderr


class Versions(unittest.TestCase):

    def test_frameworks_without_a_front_end_are_refused(self):
        for module, version, expected in (
                ('horovod.torch', '1.12.1', 'needs torch 1.13 or newer; found 1.12.1 in'),
                ('horovod.torch.elastic', '1.9.0', 'needs torch 1.13 or newer; found 1.9.0 in'),
                ('horovod.tensorflow', '2.11.1', 'needs tensorflow 2.12 or newer; found 2.11.1'),
                ('horovod.tensorflow.keras', '1.15.5', 'needs tensorflow 2.12 or newer; found 1'),
                ('horovod.keras', '2.11.0', 'needs keras 2.12 or newer; found 2.11.0'),
                ('horovod.jax', '0.9.2', 'needs jax 0.10 or newer; found 0.9.2'),
                ('horovod.mxnet', '1.8.0', 'needs mxnet 1.9 or newer, before 1.10; found 1.8.0'),
                ('horovod.mxnet', '2.0.0b1', 'needs mxnet 1.9 or newer, before 1.10; found 2.0')):
            with self.subTest(module=module, version=version):
                self.assertIn(f'HorovodVersionMismatchError: horovod.{module.split(".")[1]} '
                              f'{expected}', imported(module, version))

    def test_modules_of_a_front_end_reject_old_frameworks(self):
        for framework, version in (('torch', '1.12.1'), ('tensorflow', '2.11.1'),
                                   ('keras', '2.11.0'), ('mxnet', '1.8.0'), ('jax', '0.9.2')):
            with self.subTest(framework=framework):
                self.assertEqual('', run(ALL_MODULES, framework,
                                         **{framework: f'__version__ = {version!r}'}))

    def test_frameworks_that_cannot_be_imported_are_refused(self):
        for framework, failure, advice in (
                ('mxnet', 'AttributeError', 'MXNet 1.9 needs a NumPy before 1.24'),
                ('tensorflow', 'TypeError', 'install one that fits what it uses')):
            with self.subTest(framework=framework):
                self.assertIn(
                    f'HorovodVersionMismatchError: horovod.{framework}: "import {framework}" failed '
                    f'with {failure}: old; NumPy is 1.26.4: {advice}',
                    run(f'import horovod.{framework}', numpy='__version__ = "1.26.4"',
                        **{framework: f'import numpy\nraise {failure}("old")'}))

    def test_supported_frameworks_are_accepted(self):
        for name, version in (('torch', '1.13.0a0'), ('torch', '2.15.0+cu132'), ('torch', '10.0'),
                              ('tensorflow', '2.12.0'), ('mxnet', '1.9.1'), ('keras', '3.0.0'),
                              ('jax', '0.10.2')):
            fake = unittest.mock.Mock(__version__=version)
            with unittest.mock.patch.dict(sys.modules, {name: fake}):
                self.assertIs(versions.require(name), fake)
        self.assertTrue(issubclass(HorovodVersionMismatchError, ImportError))

    def test_an_old_python_is_refused(self):
        self.assertRegex(run(OLD_PYTHON), 'ImportError: hvd needs Python 3.8 or newer, this is '
                                          r'Python 3.7 \(.*\): install it')

    def test_an_old_python_can_read_the_file_with_the_error(self):
        """Checks that the file uses no newer syntax: Python before 3.6 has no f-strings, and Python
        2 has no annotations."""
        for line in (PACKAGE / '__init__.py').read_text().splitlines():
            self.assertNotRegex(line, r"\bf['\"]|->|:=|nonlocal|print ")
            self.assertTrue(line.isascii())

    def test_the_oldest_supported_python_can_read_all_files(self):
        for path in PACKAGE.rglob('*.py'):
            ast.parse(path.read_text(), str(path), feature_version=(3, 8))
        minimum = PACKAGE.parent / 'metadata/hvd.METADATA.in'
        if minimum.exists():  # not in an install
            self.assertIn('Requires-Python: >= 3.8', minimum.read_text())
