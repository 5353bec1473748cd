# SPDX-License-Identifier: Apache-2.0
"""Elastic training: ``hvd.elastic``."""

from horovod.common.elastic import ObjectState, begin_anew, run_fn
from horovod.torch.elastic.sampler import ElasticSampler
from horovod.torch.elastic.state import TorchState


def run(func):
    """Decorator for the training function ``func(state, ...)``, whose first argument is an
    hvd.elastic.TorchState.

    The function starts with the state of rank 0. If a rank dies, it is called again with the state
    of the last commit. If ranks join or leave, it is called again after the commit that notices
    it. Needs an elastic job: ``srun --hvd=elastic`` or ``hvdrun --min-np N``; in other jobs the
    death of a rank ends the job.
    """
    return run_fn(func, begin_anew)
