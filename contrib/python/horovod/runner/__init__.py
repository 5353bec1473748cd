# SPDX-License-Identifier: Apache-2.0
"""Starts a job from Python: ``horovod.run(func)`` calls a function on all ranks."""

import functools
import warnings
from collections.abc import Mapping

from horovod.common.arguments import check_iterable, wrong_type


class _HorovodArgs:
    """The options of a job as attributes, named as in Horovod. Some tools fill in such an object
    and pass it to ``horovod.runner.launch._run``. None means hvdrun's default."""

    def __init__(self):
        self.num_proc = 1
        self.command = None  # a list of words
        self.run_func = None  # a function to call instead of a command
        self.executable = None  # the Python interpreter that ranks run; None: this one
        self.hosts = None  # such as "host:4,other:2"
        for name in (
                'min_num_proc max_num_proc slots elastic_timeout reset_limit cooldown_range '
                'hostfile host_discovery_script start_timeout ssh_port ssh_identity_file '
                'disable_cache check_build nic output_filename prefix_output_with_timestamp '
                'verbose config_file nics mpi_args binding_args use_gloo use_mpi use_jsrun '
                'fusion_threshold_mb cycle_time_ms cache_capacity hierarchical_allreduce '
                'hierarchical_allgather torus_allreduce num_nccl_streams thread_affinity '
                'gloo_timeout_seconds tcp_flag mpi_threads_disable autotune autotune_log_file '
                'autotune_warmup_samples autotune_steps_per_sample '
                'autotune_bayes_opt_max_samples autotune_gaussian_process_noise '
                'timeline_filename timeline_mark_cycles no_stall_check '
                'stall_check_warning_time_seconds stall_check_shutdown_time_seconds log_level '
                'log_with_timestamp').split():
            setattr(self, name, None)


def run(func, args=(), kwargs=None, num_proc=1, min_num_proc=None, max_num_proc=None, slots=None,
        reset_limit=None, cooldown_range=None, hosts=None, hostfile=None,
        host_discovery_script=None, start_timeout=None, ssh_port=None, ssh_identity_file=None,
        disable_cache=None, output_filename=None, verbose=None, use_gloo=None, use_mpi=None,
        mpi_args=None, network_interface=None, network_interfaces=None, executable=None, np=None,
        min_np=None, max_np=None):
    """Starts a job with hvdrun, calls ``func(*args, **kwargs)`` on each rank, and returns the list
    of results in rank order.

    The function, its arguments and its results are pickled. If cloudpickle is installed, the
    function may also be defined in the script itself or in a notebook.

    num_proc: the number of ranks.
    executable: the Python interpreter that the ranks run; None: the one of this process.
    The other arguments are hvdrun's options of the same names. np, min_np, max_np and
    network_interface are deprecated names.

    Raises RuntimeError, with the traceback of the rank, if a rank fails; ValueError for arguments
    that exclude each other; TypeError if func, args or kwargs have the wrong type.
    """
    if not callable(func):
        raise wrong_type('func', func, 'a function')
    check_iterable('args', args, 'a tuple of arguments')
    if not (kwargs is None or isinstance(kwargs, Mapping)):
        raise wrong_type('kwargs', kwargs, 'a dict of arguments, or None')
    if hosts is not None and hostfile is not None:
        raise ValueError('Argument hosts and hostfile only allow one provided.')
    if use_gloo and use_mpi:
        raise ValueError('Argument use_gloo and use_mpi only allow one set True.')
    options = _HorovodArgs()
    options.num_proc = _renamed('np', np, 'num_proc', None if num_proc == 1 else num_proc) or 1
    options.min_num_proc = _renamed('min_np', min_np, 'min_num_proc', min_num_proc)
    options.max_num_proc = _renamed('max_np', max_np, 'max_num_proc', max_num_proc)
    options.nics = _renamed('network_interface', network_interface, 'network_interfaces',
                            network_interfaces)
    options.run_func = functools.partial(func, *args, **(kwargs or {}))
    given = dict(locals())
    for name in ('slots reset_limit cooldown_range hosts hostfile host_discovery_script '
                 'start_timeout ssh_port ssh_identity_file disable_cache output_filename verbose '
                 'use_gloo use_mpi mpi_args executable').split():
        setattr(options, name, given[name])
    from horovod.runner.launch import _run
    return _run(options)


def _renamed(old, old_value, new, value):
    """Returns the value of an argument that has been renamed. Warns if the old name was used."""
    if old_value is None:
        return value
    warnings.warn(f'{old} is deprecated, use {new} instead', DeprecationWarning, stacklevel=3)
    return old_value if value is None else value
