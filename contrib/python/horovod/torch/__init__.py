# SPDX-License-Identifier: Apache-2.0
"""Distributed training with PyTorch: ``import horovod.torch as hvd``."""

import os

from horovod.common.versions import require

require('torch')  # before imports that fail with unsupported versions

# torch reads this when it allocates the first tensor in host memory. Tensors of 2 MiB or more then
# get huge pages. Each step allocates its gradients anew; faults of 4 KiB take up to 40 % of a step.
if os.path.exists('/sys/kernel/mm/transparent_hugepage'):  # else torch would warn on each rank
    os.environ.setdefault('THP_MEM_ALLOC_ENABLE', '1')

from horovod.common.exceptions import HorovodInternalError
from horovod.torch import elastic, mpi_ops, steps
from horovod.torch.compression import Compression
from horovod.torch.functions import (allgather_object, broadcast_object,
                                     broadcast_optimizer_state, broadcast_parameters)
from horovod.torch.mpi_ops import (
    Adasum, Average, Max, Min, ProcessSet, Product, Sum, add_process_set, allgather,
    allgather_async, allreduce, allreduce_, allreduce_async, allreduce_async_, alltoall,
    alltoall_async, barrier, broadcast, broadcast_, broadcast_async, broadcast_async_,
    ccl_built, cross_rank, cross_size, cuda_built, ddl_built, global_process_set, gloo_built,
    gloo_enabled, grouped_allgather, grouped_allgather_async, grouped_allreduce,
    grouped_allreduce_, grouped_allreduce_async, grouped_allreduce_async_,
    grouped_reducescatter, grouped_reducescatter_async, init, is_initialized, join, local_rank,
    local_size, mpi_built, mpi_enabled, mpi_threads_supported, nccl_built, poll, rank,
    reducescatter, reducescatter_async, remove_process_set, rocm_built, section, should_stop,
    shutdown, size, sparse_allreduce_async, start_timeline, stop_on_signals, stop_timeline,
    synchronize)
from horovod.torch.optimizer import DistributedOptimizer
from horovod.torch.sync_batch_norm import SyncBatchNorm

_MPI_LIB_AVAILABLE = True
steps.watch()


def _check_has_gpu():
    import torch
    return torch.cuda.is_available()
