# SPDX-License-Identifier: Apache-2.0
"""Small questions that scripts and tools ask, without init and mostly without a framework."""

import contextlib
import importlib
import importlib.util
import os

from horovod.common.basics import basics

_COUNT_GPUS = {
    'torch': lambda torch: torch.cuda.device_count(),
    'tensorflow': lambda tensorflow: len(tensorflow.config.list_physical_devices('GPU')),
    'mxnet': lambda mxnet: mxnet.context.num_gpus(),
}


def extension_available(ext_base_name, verbose=False):
    """Whether there is a front end for the framework, and the framework, in this Python."""
    try:
        return (importlib.util.find_spec(f'horovod.{ext_base_name}') is not None
                and importlib.util.find_spec(ext_base_name) is not None)
    except ModuleNotFoundError:
        return False


def gpu_available(ext_base_name, verbose=False):
    """Whether the framework, which this imports, sees a GPU."""
    count = _COUNT_GPUS.get(ext_base_name)
    return (count is not None and extension_available(ext_base_name)
            and count(importlib.import_module(ext_base_name)) > 0)


def mpi_built(verbose=False):
    return basics.mpi_built()


def gloo_built(verbose=False):
    return basics.gloo_built()


def nccl_built(verbose=False):
    return basics.nccl_built()


def ddl_built(verbose=False):
    return basics.ddl_built()


def ccl_built(verbose=False):
    return basics.ccl_built()


def cuda_built(verbose=False):
    return basics.cuda_built()


def rocm_built(verbose=False):
    return basics.rocm_built()


@contextlib.contextmanager
def env(**kwargs):
    """Environment variables that are set within the context; None: not set."""
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
    """The list in n parts of neighbours, the first ones longer by one where it does not divide."""
    few, more = divmod(len(l), n)
    begins = [part * few + min(part, more) for part in range(n + 1)]
    return [l[begin:end] for begin, end in zip(begins, begins[1:])]


def num_rank_is_power_2(num_rank):
    return num_rank != 0 and num_rank & (num_rank - 1) == 0
