# SPDX-License-Identifier: Apache-2.0

from shared import (
    init, shutdown, is_initialized, start_timeline, stop_timeline, size, rank, local_size,
    local_rank, cross_size, cross_rank, mpi_threads_supported, mpi_enabled, mpi_built,
    gloo_enabled, gloo_built, nccl_built, ddl_built, ccl_built, cuda_built, rocm_built, Average,
    Sum, Adasum)
from keras_shared import (
    broadcast_global_variables, allreduce, allgather, broadcast, reducescatter, load_model,
    Compression)

def DistributedOptimizer(optimizer, name=None, device_dense='', device_sparse='',
                         compression=Compression.none, sparse_as_dense=False,
                         gradient_predivide_factor=1.0, op=Average, num_groups=0,
                         groups=None): ...
def PartialDistributedOptimizer(optimizer, *, local_layers=None, scale_local_gradients=True): ...

callbacks: object
