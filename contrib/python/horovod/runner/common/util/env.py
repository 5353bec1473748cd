# SPDX-License-Identifier: Apache-2.0
"""The rank of this process according to its launcher."""

import os

_KINDS = [('HOROVOD_RANK', 'HOROVOD_SIZE'), ('OMPI_COMM_WORLD_RANK', 'OMPI_COMM_WORLD_SIZE'),
          ('PMI_RANK', 'PMI_SIZE'), ('SLURM_PROCID', 'SLURM_NTASKS')]


def get_env_rank_and_size():
    """Returns (rank, size) from the launcher's environment variables, without init; (0, 1) if there
    are none. Slurm's variables count only within a step: a batch script has some of them, too, but
    is not a rank."""
    for rank, size in _KINDS:
        if rank in os.environ and size in os.environ and (
                rank != 'SLURM_PROCID' or 'SLURM_STEP_ID' in os.environ):
            return int(os.environ[rank]), int(os.environ[size])
    return 0, 1
