# SPDX-License-Identifier: Apache-2.0
"""All collectives on TensorFlow's tensors. Scripts import them from this module, as from
Horovod's."""

from horovod.common.basics import basics as _basics
from horovod.common.basics import (
    Adasum, Average, Max, Min, Product, Sum, ccl_built, cross_rank, cross_size, cuda_built,
    ddl_built, gloo_built, gloo_enabled, init, is_homogeneous, is_initialized, local_rank,
    local_size, mpi_built, mpi_enabled, mpi_threads_supported, nccl_built, rank, rocm_built,
    section, should_stop, shutdown, size, start_timeline, stop_on_signals, stop_timeline)
from horovod.common.exceptions import HorovodInternalError
from horovod.common.process_sets import (ProcessSet, add_process_set, global_process_set,
                                         remove_process_set)
from horovod.common.reductions import check_num_rank_power_of_2
from horovod.common.reductions import choose_op as handle_average_backwards_compatibility
from horovod.common.util import gpu_available
from horovod.tensorflow.collectives.allgather import allgather, grouped_allgather
from horovod.tensorflow.collectives.allreduce import allreduce, grouped_allreduce
from horovod.tensorflow.collectives.alltoall import _gradient as _alltoall_grad
from horovod.tensorflow.collectives.alltoall import alltoall
from horovod.tensorflow.collectives.broadcast import broadcast, broadcast_
from horovod.tensorflow.collectives.facts import (local_rank_op, local_size_op,
                                                  process_set_included_op, rank_op, size_op)
from horovod.tensorflow.collectives.join import join
from horovod.tensorflow.collectives.nodes import normalized as _normalize_name
from horovod.tensorflow.collectives.reducescatter import grouped_reducescatter, reducescatter
from horovod.tensorflow.internals import (_allreduce, _grouped_allreduce, _grouped_reducescatter,
                                          _reducescatter)
from horovod.tensorflow.util import _executing_eagerly
