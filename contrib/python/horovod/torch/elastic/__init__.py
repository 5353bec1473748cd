# SPDX-License-Identifier: Apache-2.0
"""Training that goes on when ranks die or come: ``hvd.elastic``."""

from horovod.common.elastic import ObjectState, begin_anew, run_fn
from horovod.torch.elastic.sampler import ElasticSampler
from horovod.torch.elastic.state import TorchState


def run(func):
    """Decorates ``func(state, ...)``, which trains: it begins with rank 0's state, and begins anew
    from the last commit when a rank dies, or with more ranks when some were let in."""
    return run_fn(func, begin_anew)
