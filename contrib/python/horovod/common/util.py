# SPDX-License-Identifier: Apache-2.0
"""Functions for scripts and tools. They work without init; only gpu_available imports a
framework."""

import contextlib
import functools
import importlib
import importlib.util
import os
import re
import sysconfig

from horovod.common.basics import basics
from horovod.common.reductions import choose_op

EXTENSIONS = ['tensorflow', 'torch', 'mxnet']

_COUNT_GPUS = {
    'torch': lambda torch: torch.cuda.device_count(),
    'tensorflow': lambda tensorflow: len(tensorflow.config.list_physical_devices('GPU')),
    'mxnet': lambda mxnet: mxnet.context.num_gpus(),
}


def extension_available(ext_base_name, verbose=False):
    """Whether hvd has a front end for the framework, and the framework is installed in this
    Python."""
    try:
        return (importlib.util.find_spec(f'horovod.{ext_base_name}') is not None
                and importlib.util.find_spec(ext_base_name) is not None)
    except ModuleNotFoundError:
        return False


def gpu_available(ext_base_name, verbose=False):
    """Whether the framework sees a GPU. Imports the framework."""
    count = _COUNT_GPUS.get(ext_base_name)
    return (count is not None and extension_available(ext_base_name)
            and count(importlib.import_module(ext_base_name)) > 0)


def mpi_built(verbose=False):
    """Whether mpi4py is installed, so that scripts can start MPI."""
    return basics.mpi_built()


def gloo_built(verbose=False):
    """True: hvd can do everything that Gloo does in Horovod."""
    return basics.gloo_built()


def nccl_built(verbose=False):
    """The version code of the NCCL library, such as 22304, or 0 if there is no usable one."""
    return basics.nccl_built()


def ddl_built(verbose=False):
    """False: hvd does not use DDL."""
    return basics.ddl_built()


def ccl_built(verbose=False):
    """False: hvd does not use oneCCL."""
    return basics.ccl_built()


def cuda_built(verbose=False):
    """Whether a CUDA driver was found, so that hvd uses GPU tensors in place."""
    return basics.cuda_built()


def rocm_built(verbose=False):
    """False: hvd does not support GPUs from AMD."""
    return basics.rocm_built()


@contextlib.contextmanager
def env(**kwargs):
    """A context manager that sets these environment variables; None unsets a variable."""
    before = {name: os.environ.get(name) for name in kwargs}
    _set_variables(kwargs)
    try:
        yield
    finally:
        _set_variables(before)


def _set_variables(values):
    for name, value in values.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = str(value)


def split_list(l, n):
    """Divides the list into n lists of neighbours. If n does not divide the length, the first
    len(l) % n lists have one element more."""
    few, more = divmod(len(l), n)
    begins = [part * few + min(part, more) for part in range(n + 1)]
    return [l[begin:end] for begin, end in zip(begins, begins[1:])]


def num_rank_is_power_2(num_rank):
    """Whether the number of ranks is a power of two."""
    return num_rank != 0 and num_rank & (num_rank - 1) == 0


def is_iterable(x):
    """Whether iter() accepts the value."""
    try:
        iter(x)
    except TypeError:
        return False
    return True


def _cache(f):
    """Decorator: calls the function once for each combination of arguments and keeps the
    results."""
    return functools.lru_cache(maxsize=None)(f)


def is_version_greater_equal_than(ver, target):
    """Whether a version such as "2.15.0rc1" is at least the target. ValueError unless the target
    has the form "2.15.0"."""
    if not (isinstance(ver, str) and isinstance(target, str)):
        raise ValueError(f'expected two versions as strings, found {ver!r} and {target!r}')
    if len(target.split('.')) != 3:
        raise ValueError('We only accepts target version values in the form of: '
                         f'major.minor.patch. Received: {target}')
    return _version_key(ver) >= _version_key(target)


def _version_key(version):
    """Returns a key that sorts versions: by their numbers, then pre-releases before the release.
    Ignores the local part, such as +cu118."""
    release, rest = re.match(r'v?(\d+(?:\.\d+)*)([^+]*)', version.strip()).groups()
    numbers = [int(number) for number in release.split('.')]
    while numbers and numbers[-1] == 0:
        numbers.pop()
    before = re.match(r'[-_.]?(dev|a|b|c|rc|alpha|beta|pre)', rest) is not None
    return numbers, not before


def get_average_backwards_compatibility_fun(reduce_ops):
    """Returns the function that combines the arguments op and average. ``reduce_ops`` is accepted
    for compatibility and has no effect."""
    return choose_op


def get_ext_suffix():
    """Returns the file name suffix of Python's compiled modules."""
    return sysconfig.get_config_var('EXT_SUFFIX') or '.so'


def get_extension_full_path(pkg_path, *args):
    """Returns the path that a compiled module of Horovod would have. hvd has no such modules."""
    return os.path.join(os.path.dirname(pkg_path), *args) + get_ext_suffix()


def check_extension(ext_name, ext_env_var, pkg_path, *args):
    """Raises ImportError if hvd has no front end of this name, such as "horovod.torch", or if its
    framework is missing. The other arguments are accepted for compatibility and have no effect."""
    framework = ext_name.rpartition('.')[2]
    if not extension_available(framework):
        raise ImportError(f'Extension {ext_name} has not been built: there is no {framework} in '
                          'this Python')


def check_installed_version(name, version, exception=None):
    """Does nothing: hvd is not built against a particular version of a framework."""
