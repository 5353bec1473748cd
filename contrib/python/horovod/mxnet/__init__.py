# SPDX-License-Identifier: Apache-2.0
"""Distributed training with MXNet: ``import horovod.mxnet as hvd``."""

from horovod.common.versions import require

require('mxnet')  # before imports that fail with unsupported versions

from horovod.common.exceptions import HorovodInternalError
from horovod.mxnet import mpi_ops
from horovod.mxnet.compression import Compression
from horovod.mxnet.functions import allgather_object, broadcast_object, broadcast_parameters
from horovod.mxnet.mpi_ops import (
    Adasum, Average, Max, Min, ProcessSet, Product, Sum, add_process_set, allgather, allreduce,
    allreduce_, alltoall, broadcast, broadcast_, ccl_built, cross_rank, cross_size, cuda_built,
    ddl_built, global_process_set, gloo_built, gloo_enabled, grouped_allgather,
    grouped_allreduce, grouped_allreduce_, grouped_reducescatter, init, is_initialized,
    local_rank, local_size, mpi_built, mpi_enabled, mpi_threads_supported, nccl_built, rank,
    reducescatter, remove_process_set, rocm_built, section, should_stop, shutdown, size,
    start_timeline, stop_on_signals, stop_timeline)
from horovod.mxnet.optimizer import DistributedOptimizer, DistributedTrainer
