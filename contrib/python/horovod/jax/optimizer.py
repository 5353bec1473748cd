# SPDX-License-Identifier: Apache-2.0
"""DistributedOptimizer for optax."""

import itertools

from horovod.common.arguments import check_gradient_settings, check_name, wrong_type
from horovod.common.basics import Average
from horovod.common.process_sets import global_process_set
from horovod.jax.collectives import allreduce
from horovod.jax.compression import Compression

_optimizers = itertools.count()


def DistributedOptimizer(optimizer, name=None, compression=Compression.none, op=Average,
                         gradient_predivide_factor=1.0, process_set=global_process_set):
    """Returns an optax optimizer whose update() first reduces the gradients over all ranks, as one
    group. It works within and outside jax.jit.

    optimizer: an optax.GradientTransformation.
    name: by which the ranks match gradients. The default is a number: the ranks must make their
        optimizers in the same order.
    compression: a member of hvd.Compression: the type in which gradients travel between ranks.
    op: Average (the default), Sum or Adasum.
    gradient_predivide_factor: splits the division of the average: the gradients are multiplied by
        1/f before the sum and by f/size after it, to avoid overflow.
    process_set: the ranks that share gradients.
    """
    check_gradient_settings(op, compression, gradient_predivide_factor, process_set)
    check_name(name)
    if not (hasattr(optimizer, 'update') and hasattr(optimizer, '_replace')):
        raise wrong_type('optimizer', optimizer, 'an optax.GradientTransformation')
    if gradient_predivide_factor != 1.0 and op != Average:
        raise ValueError('gradient_predivide_factor not supported with op != Average')
    name = name or f'DistributedOptimizer.{next(_optimizers)}'

    def update(updates, *args, **kwargs):
        reduced = allreduce(updates, op, name, compression, 1.0 / gradient_predivide_factor,
                            gradient_predivide_factor, process_set)
        return optimizer.update(reduced, *args, **kwargs)

    return optimizer._replace(update=update)
