# SPDX-License-Identifier: Apache-2.0
"""Distributed training with Keras, on TensorFlow or torch: ``import horovod.keras as hvd``."""

from horovod.common.versions import require

keras = require('keras')  # before imports that fail with unsupported versions

from horovod import _keras
from horovod._keras import optimizer as _optimizer
from horovod._keras import saving as _saving
from horovod.common.basics import (
    Adasum, Average, Sum, ccl_built, cross_rank, cross_size, cuda_built, ddl_built, gloo_built,
    gloo_enabled, init, is_initialized, local_rank, local_size, mpi_built, mpi_enabled,
    mpi_threads_supported, nccl_built, rank, rocm_built, section, should_stop, shutdown, size,
    start_timeline, stop_on_signals, stop_timeline)
from horovod.common.process_sets import (ProcessSet, add_process_set, global_process_set,
                                         remove_process_set)
from horovod.keras import callbacks, elastic

_engine = _keras.engine(keras)
Compression = _engine.Compression
allreduce = _engine.allreduce
allgather = _engine.allgather
broadcast = _engine.broadcast
reducescatter = _engine.reducescatter
broadcast_global_variables = _engine.broadcast_global_variables


def DistributedOptimizer(optimizer, name=None, device_dense='', device_sparse='',
                         compression=Compression.none, sparse_as_dense=False,
                         gradient_predivide_factor=1.0, op=Average, num_groups=0, groups=None,
                         backward_passes_per_step=1, average_aggregated_gradients=False,
                         process_set=global_process_set, scale_local_gradients=True):
    """Returns a Keras optimizer that reduces the gradients over all ranks before each step. For the
    arguments see help(horovod._keras.optimizer.distribute)."""
    return _optimizer.distribute(keras, **locals())


def PartialDistributedOptimizer(optimizer, name=None, device_dense='', device_sparse='',
                                compression=Compression.none, sparse_as_dense=False,
                                gradient_predivide_factor=1.0, op=Average, num_groups=0,
                                groups=None, backward_passes_per_step=1,
                                average_aggregated_gradients=False,
                                process_set=global_process_set, local_layers=None,
                                scale_local_gradients=True):
    """Returns a DistributedOptimizer that does not reduce the gradients of ``local_layers``, a
    built layer or a list of them: each rank uses its own."""
    return _optimizer.distribute_partially(keras, **locals())


load_model = _saving.loader(keras, Compression, DistributedOptimizer, __name__)
