# SPDX-License-Identifier: Apache-2.0
"""Builds the wheel of the distribution hvd. pip calls build_wheel(), because pyproject.toml names
this module as the build backend.

    wheel_backend.py ROOT FOLDER    packs what `meson install --destdir ROOT` has installed

The wheel has the package horovod with hvd's programs and libraries in horovod/_hvd, the package
hvd, and the metadata of two distributions. One is hvd itself. The other, horovod, satisfies what
requires horovod==0.28.1. It has no list of files, so pip refuses to uninstall or replace it alone;
its INSTALLER tells why.
"""

import os
import pathlib
import shutil
import subprocess
import sys
import sysconfig
import tempfile

from wheel.wheelfile import WheelFile

HERE = pathlib.Path(__file__).resolve().parent
SOURCE = HERE.parent.parent
# Nothing is installed there, so the programs find no files of another installation of hvd.
PREFIX = '/nonexistent'
# These files find each other by their relative paths, so the wheel keeps meson's layout.
PROGRAMS = ['hvdrun', 'hvd-info', 'hvd-bench']
LIBRARIES = ['libhvd.so', 'hvd/hvd-boot', 'hvd/hvd-rendezvous', 'hvd/hvd_gpu.so', 'hvd/hvd_ucx.so']
COMMANDS = ['hvdrun', 'horovodrun', 'hvd-info', 'hvd-bench']


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """Builds hvd, without tests and without the plugin for Slurm, and packs it. The settings are
    arguments of pack()."""
    del metadata_directory
    with tempfile.TemporaryDirectory(prefix='hvd-wheel-') as work:
        work = pathlib.Path(work).resolve()
        _meson(work / 'build', 'setup', work / 'build', SOURCE, f'--prefix={PREFIX}',
               '--libdir=lib', '--buildtype=release', '-Dslurm=disabled', '-Dman=disabled')
        _meson(work / 'build', 'install', '-C', work / 'build', '--destdir', work / 'root')
        return pack(work / 'root', wheel_directory, **(config_settings or {}))


def _meson(build, *arguments):
    """Runs meson. The paths of the source tree stay out of what it compiles, so that two builds in
    different folders give the same wheel."""
    paths = [SOURCE, os.path.relpath(SOURCE, build)]
    flags = [os.environ.get('CFLAGS', ''), *(f'-ffile-prefix-map={path}=hvd' for path in paths)]
    subprocess.run([sys.executable, '-m', 'mesonbuild.mesonmain', *map(str, arguments)],
                   env=dict(os.environ, CFLAGS=' '.join(flags)), check=True)


def pack(root, wheel_directory, libraries=None, licenses=None, platform=None):
    """Packs an installation into a wheel, and returns the name of its file.

    libraries: a folder whose files are added beside libhvd.so.
    licenses: a folder with the licenses of these libraries.
    platform: the wheel's platform tag; by default that of this machine, as in linux_x86_64.
    """
    metadata, = pathlib.Path(root).rglob('lib/hvd/python/horovod-*.dist-info')
    version = metadata.name[:-len('.dist-info')].partition('+hvd.')[2]
    platform = platform or sysconfig.get_platform().replace('-', '_').replace('.', '_')
    file = f'hvd-{version}-py3-none-{platform}.whl'
    with tempfile.TemporaryDirectory(prefix='hvd-wheel-') as tree:
        tree = pathlib.Path(tree)
        _add_packages(metadata.parent, tree)
        _add_programs(metadata.parents[3], tree / 'horovod/_hvd')
        if libraries:
            shutil.copytree(libraries, tree / 'horovod/_hvd/lib', dirs_exist_ok=True)
        _add_commands(tree / f'hvd-{version}.data/scripts')
        _add_own_metadata(metadata, version, platform, tree / f'hvd-{version}.dist-info')
        if licenses:
            shutil.copytree(licenses, tree / f'hvd-{version}.dist-info/licenses',
                            dirs_exist_ok=True)
        # In .data, because a wheel may have only one such folder at its top.
        _add_metadata_of_horovod(metadata, tree / f'hvd-{version}.data/platlib' / metadata.name)
        _set_modes(tree)
        with WheelFile(os.path.join(wheel_directory, file), 'w') as wheel:
            wheel.write_files(tree)
    return file


def _add_packages(installed, tree):
    for package in ('horovod', 'hvd'):
        shutil.copytree(installed / package, tree / package,
                        ignore=shutil.ignore_patterns('__pycache__'))


def _add_programs(prefix, folder):
    libdir = next(prefix.rglob('libhvd.so')).parent
    files = {f'bin/{name}': prefix / 'bin' / name for name in PROGRAMS}
    files.update({f'lib/{name}': libdir / name for name in LIBRARIES})
    files['share/hvd/report.html'] = prefix / 'share/hvd/report.html'
    files.update({f'lib/hvd/bench/{script.name}': script
                  for script in (libdir / 'hvd/bench').glob('*.py')})
    files['share/hvd/thresholds.conf'] = prefix / 'share/hvd/thresholds.conf'
    for name, installed in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(installed, folder / name)  # follows symbolic links


def _add_commands(folder):
    folder.mkdir(parents=True)
    for name in COMMANDS:
        shutil.copy(HERE / 'metadata/command.py', folder / name)
        (folder / name).chmod(0o755)


def _add_own_metadata(installed, version, platform, folder):
    folder.mkdir()
    text = (HERE / 'metadata/hvd.METADATA.in').read_text()
    (folder / 'METADATA').write_text(text.replace('@version@', version))
    (folder / 'WHEEL').write_text('Wheel-Version: 1.0\nGenerator: hvd\nRoot-Is-Purelib: false\n'
                                  f'Tag: py3-none-{platform}\n')
    shutil.copy(installed / 'entry_points.txt', folder)
    (folder / 'licenses').mkdir()
    shutil.copy(SOURCE / 'LICENSE', folder / 'licenses')


def _add_metadata_of_horovod(installed, folder):
    folder.mkdir(parents=True)
    shutil.copy(installed / 'METADATA', folder)
    (folder / 'INSTALLER').write_text('hvd (pip uninstall hvd)\n')


def _set_modes(tree):
    """Makes the modes independent of the umask."""
    for path in tree.rglob('*'):
        is_program = path.is_dir() or path.stat().st_mode & 0o100
        path.chmod(0o755 if is_program else 0o644)


if __name__ == '__main__':
    print(pack(sys.argv[1], sys.argv[2]))
