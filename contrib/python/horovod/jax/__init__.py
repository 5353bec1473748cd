# SPDX-License-Identifier: Apache-2.0
"""Distributed training with JAX: ``import horovod.jax as hvd``."""

import atexit
import sys

from horovod.common.versions import require

require('jax')  # before imports that fail with unsupported versions

from horovod.common import basics as _basics
from horovod.common import membership as _membership
from horovod.common.basics import (
    Adasum, Average, Max, Min, Product, Sum, ccl_built, cross_rank, cross_size, cuda_built,
    ddl_built, gloo_built, gloo_enabled, init, is_homogeneous, is_initialized, local_rank,
    local_size, mpi_built, mpi_enabled, mpi_threads_supported, nccl_built, rank, rocm_built,
    section, should_stop, size, start_timeline, stop_on_signals, stop_timeline)
from horovod.common.exceptions import HorovodInternalError
from horovod.common.objects import allgather_object, broadcast_object
from horovod.common.process_sets import (ProcessSet, add_process_set, global_process_set,
                                         remove_process_set)
from horovod.jax import distributed as _distributed
from horovod.jax.collectives import (allgather, allreduce, barrier, broadcast,
                                     broadcast_parameters, wait)
from horovod.jax.compression import Compression
from horovod.jax.distributed import initialize
from horovod.jax.optimizer import DistributedOptimizer


def shutdown():
    """Waits for the collectives of compiled programs, then leaves the job."""
    try:
        if is_initialized():
            wait()
    finally:
        _basics.shutdown()


@atexit.register
def _leave_job():
    """Leaves the job before JAX's clean-up, which waits for compiled programs: one of them may wait
    for a rank that itself waits for this one. Other ranks need the collectives under way, unless an
    exception ended the script."""
    if _membership.is_inherited():
        return
    if not hasattr(sys, 'last_value'):
        shutdown()
        return
    _basics.end_script()
    _distributed.leave_soon()
