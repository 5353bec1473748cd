# SPDX-License-Identifier: Apache-2.0
"""The versions of the frameworks that the front ends support."""

import importlib
import re
import sys

from horovod.common.exceptions import HorovodVersionMismatchError

_LEAST = {'torch': (1, 13), 'tensorflow': (2, 12), 'keras': (2, 12), 'mxnet': (1, 9),
          'jax': (0, 10)}
_BEYOND = {'mxnet': (1, 10)}  # the first release whose interface differs
_FITS = {'mxnet': 'MXNet 1.9 needs a NumPy before 1.24 (pip install "numpy<1.24")'}


def _release(version):
    """Returns the first two numbers of a version such as "2.15.0+cu132"."""
    return tuple(map(int, re.findall(r'\d+', version)[:2]))


def _text(release):
    return '.'.join(map(str, release))


def _import(framework):
    """Imports a framework. An old framework may raise an AttributeError or TypeError on import if
    a package that it uses is too new."""
    try:
        return importlib.import_module(framework)
    except (AttributeError, TypeError) as error:
        numpy = getattr(sys.modules.get('numpy'), '__version__', 'not loaded')
        fits = _FITS.get(framework, 'install one that fits what it uses')
        raise HorovodVersionMismatchError(
            f'horovod.{framework}: "import {framework}" failed with {type(error).__name__}: '
            f'{error}; NumPy is {numpy}: {fits}') from error


def require(framework):
    """Imports and returns the framework. HorovodVersionMismatchError if hvd does not support its
    version, or if its own import fails."""
    module = _import(framework)
    found = getattr(module, '__version__', '')
    least, beyond = _LEAST[framework], _BEYOND.get(framework)
    if not found or least <= _release(found) and not (beyond and _release(found) >= beyond):
        return module
    range_ = f'{_text(least)} or newer' + (f', before {_text(beyond)}' if beyond else '')
    raise HorovodVersionMismatchError(
        f'horovod.{framework} needs {framework} {range_}; found {found} in '
        f'{getattr(module, "__file__", None)}: install another one for this Python')
