# SPDX-License-Identifier: Apache-2.0
"""Elastic training: ``hvd.elastic``."""

from horovod.common.elastic import ObjectState, begin_anew, run_fn
from horovod.torch.elastic.sampler import ElasticSampler
from horovod.torch.elastic.state import TorchState


def run(func):
    """Decorates the training function ``func(state, ...)``. It starts with rank 0's state, and
    starts again from the last commit when a rank dies, or with more ranks when new ones have
    joined."""
    return run_fn(func, begin_anew)
