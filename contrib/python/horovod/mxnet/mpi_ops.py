# SPDX-License-Identifier: Apache-2.0
"""All collectives on MXNet's arrays. Scripts import them from this module, as from Horovod's."""

from horovod.common.basics import basics as _basics
from horovod.common.basics import (
    Adasum, Average, Max, Min, Product, Sum, ccl_built, cross_rank, cross_size, cuda_built,
    ddl_built, gloo_built, gloo_enabled, init, is_homogeneous, is_initialized, local_rank,
    local_size, mpi_built, mpi_enabled, mpi_threads_supported, nccl_built, rank, rocm_built,
    section, should_stop, size, start_timeline, stop_on_signals, stop_timeline)
from horovod.common.exceptions import HorovodInternalError
from horovod.common.process_sets import (ProcessSet, add_process_set, global_process_set,
                                         remove_process_set)
from horovod.common.reductions import choose_op as handle_average_backwards_compatibility
from horovod.mxnet import engine as _engine
from horovod.mxnet.collectives import (allgather, allreduce, allreduce_, alltoall, broadcast,
                                       broadcast_, grouped_allgather, grouped_allreduce,
                                       grouped_allreduce_, grouped_reducescatter,
                                       reducescatter)


def shutdown():
    """Waits for the collectives under way, then leaves the job."""
    if _basics.is_initialized():
        _engine.drain()
    _basics.shutdown()
