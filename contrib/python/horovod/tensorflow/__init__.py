# SPDX-License-Identifier: Apache-2.0
"""Distributed training with TensorFlow: ``import horovod.tensorflow as hvd``."""

from horovod.common.versions import require

require('tensorflow')  # before imports that fail with unsupported versions

from horovod.common.exceptions import HorovodInternalError
from horovod.common.util import gpu_available, split_list
from horovod.tensorflow import elastic, mpi_ops, util
from horovod.tensorflow.cluster_resolver import ClusterResolver
from horovod.tensorflow.compression import Compression
from horovod.tensorflow.functions import (BroadcastGlobalVariablesHook, allgather_object,
                                          broadcast_global_variables, broadcast_object,
                                          broadcast_object_fn, broadcast_variables)
from horovod.tensorflow.internals import (_allreduce_cond, _grouped_allreduce_cond,
                                          _make_allreduce_grads_fn)
from horovod.tensorflow.mpi_ops import (
    Adasum, Average, Max, Min, ProcessSet, Product, Sum, add_process_set, allgather, allreduce,
    alltoall, broadcast, broadcast_, ccl_built, check_num_rank_power_of_2, cross_rank,
    cross_size, cuda_built, ddl_built, global_process_set, gloo_built, gloo_enabled,
    grouped_allgather, grouped_allreduce, grouped_reducescatter, init, is_homogeneous,
    is_initialized, join, local_rank, local_rank_op, local_size, local_size_op, mpi_built,
    mpi_enabled, mpi_threads_supported, nccl_built, process_set_included_op, rank, rank_op,
    reducescatter, remove_process_set, rocm_built, section, should_stop, shutdown, size,
    size_op, start_timeline, stop_on_signals, stop_timeline, _allreduce, _grouped_allreduce,
    _grouped_reducescatter, _reducescatter, handle_average_backwards_compatibility)
from horovod.tensorflow.optimizer import (DistributedOptimizer, _DistributedAdasumOptimizer,
                                          _DistributedOptimizer, _LegacyOptimizer)
from horovod.tensorflow.tape import (DistributedGradientTape, PartialDistributedGradientTape,
                                     _DistributedGradientTape)
from horovod.tensorflow.util import (_cache, _executing_eagerly, _make_subgraph, refs_to_vars,
                                     vars_to_refs)

_IS_TF2 = True


def __getattr__(name):
    """Imports classes that need Keras on first use, because the import of Keras takes a second."""
    if name == 'SyncBatchNormalization':
        from horovod.tensorflow.sync_batch_norm import SyncBatchNormalization
        return SyncBatchNormalization
    if name == 'LocalGradientAggregationHelper':
        from horovod.tensorflow.gradient_aggregation import LocalGradientAggregationHelper
        return LocalGradientAggregationHelper
    raise AttributeError(f'module {__name__!r} has no attribute {name!r}')
