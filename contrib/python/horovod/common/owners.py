# SPDX-License-Identifier: Apache-2.0
"""Looks for other distributions that have installed a package horovod into the folder of this one.
pip lets them overwrite each other's files. Reads one folder, because it runs at each import."""

import os
import sys

from horovod.runner.common.util.env import get_env_rank_and_size

_FOLDER = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# The lists of files that pip and setuptools write.
_LISTS = ('RECORD', 'installed-files.txt')


def _has_installed(metadata):
    """Tells whether the list of files in a folder of metadata has the package horovod."""
    for name in _LISTS:
        try:
            with open(os.path.join(metadata, name), encoding='utf-8', errors='replace') as file:
                return 'horovod/__init__.py' in file.read()
        except OSError:
            pass
    return False


def others(folder=_FOLDER):
    """Returns the names of the other distributions whose names contain horovod, such as
    habana_horovod. hvd-info --python finds all."""
    try:
        names = os.listdir(folder)
    except OSError:  # for example, the package is in a zip file
        return []
    return sorted(name.partition('-')[0] for name in names
                  if 'horovod' in name and name.endswith(('.dist-info', '.egg-info'))
                  and _has_installed(os.path.join(folder, name)))


def describe(names):
    """Returns a sentence that says what to do about these distributions."""
    both = ' '.join(['hvd', *names])
    return (f'{" and ".join(names)} and hvd have installed their files into the same folder '
            f'{_FOLDER}/horovod: uninstall all, then install hvd again: '
            f'{sys.executable} -m pip uninstall {both} && {sys.executable} -m pip install hvd')


def warn():
    """Warns of other distributions, on rank 0 only."""
    names = others()
    if names and get_env_rank_and_size()[0] == 0:
        print(f'hvd: {describe(names)}', file=sys.stderr, flush=True)
