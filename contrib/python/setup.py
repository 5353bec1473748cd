# SPDX-License-Identifier: Apache-2.0
"""Builds the wheel. Adds the parts that are not Python: the files that meson installs, in
horovod/_hvd, and the operations of TensorFlow and MXNet."""

import pathlib
import re
import shutil
import subprocess
import sys

from setuptools import setup
from setuptools.command.build_py import build_py

try:
    from setuptools.command.bdist_wheel import bdist_wheel
except ImportError:
    from wheel.bdist_wheel import bdist_wheel

HERE = pathlib.Path(__file__).resolve().parent
SOURCE = HERE.parent.parent
# These files find each other by their relative paths, so the wheel keeps meson's layout.
FILES = ['bin/hvdrun', 'bin/hvd-info', 'lib/libhvd.so', 'lib/hvd/hvd-boot',
         'lib/hvd/hvd-rendezvous', 'lib/hvd/hvd_gpu.so', 'lib/hvd/hvd_ucx.so']
# These go beside the Python files of their front end.
OPERATIONS = ['tensorflow/hvd_tensorflow.so', 'mxnet/hvd_mxnet.so']


def version():
    """Returns the release of Horovod whose interface this is and, after a plus sign, hvd's own
    version."""
    interface = re.search(r"__version__ = '(.+)'", (HERE / 'horovod/__init__.py').read_text())
    own = re.search(r"version: '(.+?)'", (SOURCE / 'meson.build').read_text())
    return f'{interface[1]}+hvd.{own[1]}'


class BuildPy(build_py):
    """Also builds hvd, without tests and without the plugin for Slurm."""

    def run(self):
        shutil.rmtree(self.build_lib, ignore_errors=True)  # may have files of older sources
        super().run()
        work = pathlib.Path(self.get_finalized_command('build').build_temp).resolve()
        shutil.rmtree(work, ignore_errors=True)
        self._meson('setup', work / 'meson', SOURCE, '--prefix=/usr', '--libdir=lib',
                    '--buildtype=release', '-Dslurm=disabled')
        self._meson('install', '-C', work / 'meson', '--destdir', work / 'root')
        package = pathlib.Path(self.build_lib).resolve() / 'horovod'
        for name in FILES:
            target = package / '_hvd' / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(work / 'root/usr' / name, target)  # follows symbolic links
        for name in OPERATIONS:
            shutil.copy(work / 'root/usr/lib/hvd/python/horovod' / name, package / name)

    def _meson(self, *arguments):
        subprocess.run([sys.executable, '-m', 'mesonbuild.mesonmain', *map(str, arguments)],
                       check=True)


class Wheel(bdist_wheel):
    """Marks the wheel as usable by every Python 3 on this kind of machine."""

    def finalize_options(self):
        super().finalize_options()
        self.root_is_pure = False

    def get_tag(self):
        return ('py3', 'none', super().get_tag()[2])


setup(version=version(), cmdclass={'build_py': BuildPy, 'bdist_wheel': Wheel})
