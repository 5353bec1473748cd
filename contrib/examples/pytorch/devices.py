# SPDX-License-Identifier: Apache-2.0
"""Code that the examples share: the choice of a rank's device, and printing on rank 0."""

import os

import torch

import horovod.torch as hvd


def choose(allow_gpu=True):
    """Returns this rank's GPU if there are GPUs. Otherwise returns the CPU, and limits torch to
    this rank's share of the cores unless OMP_NUM_THREADS is set."""
    if allow_gpu and torch.cuda.is_available():
        torch.cuda.set_device(hvd.local_rank() % torch.cuda.device_count())
        return torch.device('cuda', torch.cuda.current_device())
    if 'OMP_NUM_THREADS' not in os.environ:
        bound = len(os.sched_getaffinity(0))
        torch.set_num_threads(max(1, min(bound, os.cpu_count() // hvd.local_size())))
    return torch.device('cpu')


def say(*words):
    """Prints the words on rank 0 only."""
    if hvd.rank() == 0:
        print(*words, flush=True)
