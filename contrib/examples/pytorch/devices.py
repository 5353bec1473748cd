# SPDX-License-Identifier: Apache-2.0
"""The device of a rank, for the examples."""

import os

import torch

import horovod.torch as hvd


def choose(allow_gpu=True):
    """One GPU per rank if there are GPUs; else this rank's share of the cores, unless
    OMP_NUM_THREADS gives their number."""
    if allow_gpu and torch.cuda.is_available():
        torch.cuda.set_device(hvd.local_rank() % torch.cuda.device_count())
        return torch.device('cuda', torch.cuda.current_device())
    if 'OMP_NUM_THREADS' not in os.environ:
        bound = len(os.sched_getaffinity(0))
        torch.set_num_threads(max(1, min(bound, os.cpu_count() // hvd.local_size())))
    return torch.device('cpu')


def say(*words):
    """Prints on rank 0."""
    if hvd.rank() == 0:
        print(*words, flush=True)
