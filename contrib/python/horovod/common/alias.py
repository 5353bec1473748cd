# SPDX-License-Identifier: Apache-2.0
"""Gives a package a second name: both names lead to the same module objects."""

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys


class _Alias(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds and loads the submodules of ``name`` as those of ``target``."""

    def __init__(self, name, target):
        self._prefix = name + '.'
        self._target = target + '.'

    def _target_of(self, name):
        return self._target + name[len(self._prefix):]

    def find_spec(self, name, path=None, target=None):
        if not name.startswith(self._prefix):
            return None
        found = importlib.util.find_spec(self._target_of(name))
        if found is None:
            return None
        return importlib.machinery.ModuleSpec(
            name, self, origin=found.origin,
            is_package=found.submodule_search_locations is not None)

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        """Imports the target. import returns what it finds in sys.modules after this call."""
        name = module.__spec__.name
        sys.modules[name] = importlib.import_module(self._target_of(name))

    def get_code(self, name):
        """Returns the code of the target, for ``python -m``."""
        target = self._target_of(name)
        return importlib.util.find_spec(target).loader.get_code(target)


def announce(name, target):
    """Registers ``name`` as another name of the package ``target``. The finder is the first in
    sys.meta_path: Python's own would find the file of the target and load it a second time."""
    sys.meta_path.insert(0, _Alias(name, target))
