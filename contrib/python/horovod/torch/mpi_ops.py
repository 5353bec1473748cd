# SPDX-License-Identifier: Apache-2.0
"""All collectives on torch tensors. Scripts import them from this module, as from Horovod's."""

from horovod.common import requests
from horovod.common.basics import basics as _basics
from horovod.common.basics import (
    Adasum, Average, Max, Min, Product, Sum, ccl_built, cross_rank, cross_size, cuda_built,
    ddl_built, gloo_built, gloo_enabled, init, is_homogeneous, is_initialized, local_rank,
    local_size, mpi_built, mpi_enabled, mpi_threads_supported, nccl_built, rank, rocm_built,
    section, should_stop, shutdown, size, start_timeline, stop_on_signals, stop_timeline)
from horovod.common.exceptions import HorovodInternalError
from horovod.common.process_sets import (ProcessSet, add_process_set, global_process_set,
                                         remove_process_set, set_id)
from horovod.common.requests import poll, synchronize
from horovod.common.reductions import choose_op as handle_average_backwards_compatibility
from horovod.torch.collectives.allgather import (HorovodAllgather, HorovodGroupedAllgather,
                                                 allgather, allgather_async, grouped_allgather,
                                                 grouped_allgather_async)
from horovod.torch.collectives.allreduce import (HorovodAllreduce, HorovodGroupedAllreduce,
                                                 allreduce, allreduce_, allreduce_async,
                                                 allreduce_async_, grouped_allreduce,
                                                 grouped_allreduce_, grouped_allreduce_async,
                                                 grouped_allreduce_async_)
from horovod.torch.collectives.alltoall import HorovodAlltoall, alltoall, alltoall_async
from horovod.torch.collectives.broadcast import (HorovodBroadcast, broadcast, broadcast_,
                                                 broadcast_async, broadcast_async_)
from horovod.torch.collectives.reducescatter import (HorovodGroupedReducescatter,
                                                     HorovodReducescatter, grouped_reducescatter,
                                                     grouped_reducescatter_async,
                                                     reducescatter, reducescatter_async)
from horovod.torch.collectives.sparse import sparse_allreduce_async
from horovod.torch.compression import Compression


def barrier(process_set=global_process_set):
    """Blocks until all ranks of the process set have called it."""
    synchronize(requests.add(requests.barrier(set_id(process_set, 'Barrier'))))


def join(device=-1):
    """Reports that this rank has no more data, and blocks until all ranks have joined. Until then,
    this rank takes part with zeros in the allreduces of the other ranks, so ranks may have
    different numbers of batches. Returns the rank that joined last. ``device`` is accepted for
    compatibility and has no effect."""
    return synchronize(requests.add(requests.join()))
