# SPDX-License-Identifier: Apache-2.0
"""The collectives on torch tensors under the module name that scripts know."""

from horovod.common import requests
from horovod.common.basics import basics as _basics
from horovod.common.basics import Adasum, Average, Max, Min, Product, Sum
from horovod.common.exceptions import HorovodInternalError
from horovod.common.process_sets import (ProcessSet, add_process_set, global_process_set,
                                         remove_process_set, set_id)
from horovod.common.requests import poll, synchronize
from horovod.torch.collectives.allgather import (allgather, allgather_async,
                                                 grouped_allgather, grouped_allgather_async)
from horovod.torch.collectives.allreduce import (allreduce, allreduce_, allreduce_async,
                                                 allreduce_async_, grouped_allreduce,
                                                 grouped_allreduce_, grouped_allreduce_async,
                                                 grouped_allreduce_async_)
from horovod.torch.collectives.alltoall import alltoall, alltoall_async
from horovod.torch.collectives.broadcast import (broadcast, broadcast_, broadcast_async,
                                                 broadcast_async_)
from horovod.torch.collectives.reducescatter import (grouped_reducescatter,
                                                     grouped_reducescatter_async,
                                                     reducescatter, reducescatter_async)
from horovod.torch.collectives.sparse import sparse_allreduce_async

init = _basics.init
shutdown = _basics.shutdown
is_initialized = _basics.is_initialized
start_timeline = _basics.start_timeline
stop_timeline = _basics.stop_timeline
size = _basics.size
local_size = _basics.local_size
cross_size = _basics.cross_size
rank = _basics.rank
local_rank = _basics.local_rank
cross_rank = _basics.cross_rank
is_homogeneous = _basics.is_homogeneous
mpi_threads_supported = _basics.mpi_threads_supported
mpi_enabled = _basics.mpi_enabled
mpi_built = _basics.mpi_built
gloo_enabled = _basics.gloo_enabled
gloo_built = _basics.gloo_built
nccl_built = _basics.nccl_built
ddl_built = _basics.ddl_built
ccl_built = _basics.ccl_built
cuda_built = _basics.cuda_built
rocm_built = _basics.rocm_built


def barrier(process_set=global_process_set):
    """Returns when every rank of the set has called it."""
    synchronize(requests.add(requests.barrier(set_id(process_set, 'Barrier'))))


def join(device=-1):
    """Says that this rank has no more data, and waits until no rank has: until then it gives
    zeros to the allreduces of the others. Returns the last rank to join. ``device`` is accepted as
    Horovod does and not needed."""
    return synchronize(requests.add(requests.join()))
