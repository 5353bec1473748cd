# SPDX-License-Identifier: Apache-2.0
"""Internal functions of Horovod that other projects call."""

from horovod.common.basics import Average, Sum
from horovod.common.process_sets import global_process_set
from horovod.tensorflow.collectives.allreduce import allreduce, grouped_allreduce
from horovod.tensorflow.collectives.nodes import may_have_others
from horovod.tensorflow.collectives.reducescatter import grouped_reducescatter, reducescatter
from horovod.tensorflow.gradients import Reduction


def _allreduce(tensor, name=None, op=Sum, prescale_factor=1.0, postscale_factor=1.0,
               ignore_name_scope=False, process_set=global_process_set):
    """Like allreduce of a dense tensor, but the default op is Sum."""
    return allreduce(tensor, op=op, prescale_factor=prescale_factor,
                     postscale_factor=postscale_factor, name=name, process_set=process_set,
                     ignore_name_scope=ignore_name_scope)


def _grouped_allreduce(tensors, name=None, op=Sum, prescale_factor=1.0, postscale_factor=1.0,
                       ignore_name_scope=False, process_set=global_process_set):
    """Like grouped_allreduce of dense tensors, but the default op is Sum."""
    return grouped_allreduce(tensors, op=op, prescale_factor=prescale_factor,
                             postscale_factor=postscale_factor, name=name,
                             process_set=process_set, ignore_name_scope=ignore_name_scope)


def _reducescatter(tensor, name=None, op=Sum, ignore_name_scope=False,
                   process_set=global_process_set, prescale_factor=1.0, postscale_factor=1.0):
    """Like reducescatter, but the default op is Sum."""
    return reducescatter(tensor, op=op, name=name, process_set=process_set,
                         ignore_name_scope=ignore_name_scope, prescale_factor=prescale_factor,
                         postscale_factor=postscale_factor)


def _grouped_reducescatter(tensors, name=None, op=Sum, ignore_name_scope=False,
                           process_set=global_process_set, prescale_factor=1.0,
                           postscale_factor=1.0):
    """Like grouped_reducescatter, but the default op is Sum."""
    return grouped_reducescatter(tensors, op=op, name=name, process_set=process_set,
                                 ignore_name_scope=ignore_name_scope,
                                 prescale_factor=prescale_factor,
                                 postscale_factor=postscale_factor)


def _allreduce_cond(tensor, *args, process_set=global_process_set, **kwargs):
    """Like allreduce, but returns the tensor itself if there is no other rank to reduce it with."""
    if not may_have_others(process_set):
        return tensor
    return allreduce(tensor, *args, process_set=process_set, **kwargs)


def _grouped_allreduce_cond(tensors, *args, process_set=global_process_set, **kwargs):
    """Like grouped_allreduce, but returns the tensors themselves if there is no other rank to
    reduce them with."""
    if not may_have_others(process_set):
        return tensors
    return grouped_allreduce(tensors, *args, process_set=process_set, **kwargs)


def _make_allreduce_grads_fn(name, device_dense, device_sparse, compression, sparse_as_dense, op,
                             gradient_predivide_factor, groups, process_set=global_process_set):
    """Returns a function that reduces gradients over all ranks. With groups it also needs their
    variables. The arguments are those of DistributedOptimizer; ``name`` has no effect."""
    reduction = Reduction(op, gradient_predivide_factor if op == Average else 1.0, compression,
                          sparse_as_dense, device_dense, device_sparse, groups=groups,
                          process_set=process_set)

    def allreduce_grads(grads, vars=None, use_generic_names=False):
        return reduction(grads, () if vars is None else vars, use_generic_names)

    return allreduce_grads
