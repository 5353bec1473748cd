# SPDX-License-Identifier: Apache-2.0
"""Collectives on pytrees of arrays.

Each takes a pytree of JAX's arrays, NumPy's arrays and numbers, and returns one of the same
structure: NumPy's arrays stay NumPy's, the others become JAX's. A pytree is one group, which libhvd
reduces together. The ranks match arrays by ``name``; without a name they match unnamed pytrees by
the order of the calls. All ranks of ``process_set`` must call a collective.

While JAX traces a function, for example in jax.jit, a collective becomes a call of the compiled
program (program.py).
"""

import jax
import numpy as np

from horovod.common import membership, requests
from horovod.common.arguments import check_name, check_op, check_rank, check_scale
from horovod.common.basics import Average
from horovod.common.process_sets import global_process_set, set_id
from horovod.jax import arrays, program
from horovod.jax.compression import Compression, prepare_all


def _check(operation, name, process_set):
    """Raises the errors of wrong arguments when the script calls, not when a program runs."""
    membership.must_be_rank()
    check_name(name)
    set_id(process_set, operation)


def _names(operation, name, count, process_set):
    if count == 1:
        return [requests.tensor_name(operation, name, process_set)]
    return requests.tensor_names(f'grouped_{operation}', name, count, process_set)


def wait():
    """Waits for the collectives of all compiled programs that this process has started. JAX runs
    programs in the background, so a collective that followed at once could overtake them."""
    jax.effects_barrier()


def _run(collective, leaves, shapes):
    """Calls ``collective(sources, targets)`` with the leaves as NumPy arrays; returns the results
    as arrays like the leaves. ``targets`` is None, or the memory for results of these shapes. While
    JAX traces, adds the call to the program instead."""
    if any(map(arrays.is_traced, leaves)):
        return program.add_call(collective, leaves, shapes)
    wait()
    results = collective([arrays.on_host(leaf) for leaf in leaves], None)
    return [arrays.placed(*each) for each in zip(results, leaves)]


def allreduce(tree, op=Average, name=None, compression=Compression.none, prescale_factor=1.0,
              postscale_factor=1.0, process_set=global_process_set):
    """Returns the reduction of each array over all ranks. It has no derivative: reduce gradients,
    not what jax.grad differentiates.

    tree: the same structure, shapes and dtypes on all ranks.
    op: Average (the default), Sum, Min, Max, Product or Adasum.
    compression: a member of hvd.Compression: the type in which arrays travel between ranks.
    prescale_factor, postscale_factor: multiply the arrays before and after the reduction.

    Raises HorovodInternalError if the ranks' arrays do not match or a rank has died; within
    jax.jit, jax.errors.JaxRuntimeError with the same text.
    """
    _check('Allreduce', name, process_set)
    op, scale = check_op(op), check_scale((prescale_factor, postscale_factor))
    leaves, structure = arrays.flatten(tree, 'allreduce')
    if not leaves:
        return tree
    sent, wires, restores = prepare_all(compression, leaves, op)

    def collective(sources, targets):
        targets = targets or [np.empty_like(source) for source in sources]
        names = _names('allreduce', name, len(sources), process_set)
        described = [arrays.describe(*each) for each in zip(names, sources, targets, wires)]
        requests.synchronize(requests.add(requests.allreduce(
            described, op, scale, set_id(process_set, 'Allreduce'), (sources, targets),
            lambda request: None)))
        return targets

    results = _run(collective, sent, [leaf.shape for leaf in sent])
    return structure.unflatten(restore(result) for restore, result in zip(restores, results))


def broadcast(tree, root_rank, name=None, process_set=global_process_set):
    """Returns the arrays of rank root_rank. All ranks pass the same structure, shapes and dtypes.
    root_rank is a rank of the job, even if process_set has only some of its ranks."""
    _check('Broadcast', name, process_set)
    root_rank = check_rank('root_rank', root_rank)
    leaves, structure = arrays.flatten(tree, 'broadcast')
    if not leaves:
        return tree

    def collective(sources, targets):
        targets = targets or [np.empty_like(source) for source in sources]
        for source, target in zip(sources, targets):
            target[...] = source
        number = set_id(process_set, 'Broadcast')
        names = _names('broadcast', name, len(sources), process_set)
        handles = [requests.add(requests.broadcast(
            arrays.describe(each, target, target), root_rank, number, target, lambda request: None))
                   for each, target in zip(names, targets)]
        for handle in handles:
            requests.synchronize(handle)
        return targets

    return structure.unflatten(_run(collective, leaves, [leaf.shape for leaf in leaves]))


def broadcast_parameters(params, root_rank=0):
    """Returns the parameters of rank root_rank, so that all ranks start with the same. JAX's arrays
    cannot change, so use the result: ``params = hvd.broadcast_parameters(params)``. The state of an
    optimizer is a pytree, too."""
    return broadcast(params, root_rank, 'parameters')


def _copy_rows(result, target):
    if len(result) != len(target):
        raise ValueError(
            f'allgather: the ranks gave {len(result)} rows, but this program was compiled for '
            f'{len(target)}: give the same number on all ranks, or gather outside jax.jit')
    target[...] = result


def allgather(tree, name=None, process_set=global_process_set):
    """Returns the arrays of all ranks, concatenated along dimension 0 in rank order. Ranks may
    differ in dimension 0 only. Within jax.jit, all ranks must pass the same number of rows, because
    JAX has to know the shape of the result."""
    _check('Allgather', name, process_set)
    leaves, structure = arrays.flatten(tree, 'allgather')
    if not leaves:
        return tree
    if not all(leaf.shape for leaf in leaves):
        raise ValueError('allgather: an array without dimensions has no rows to concatenate: use '
                         'reshape(1)')

    def collective(sources, targets):
        names = _names('allgather', name, len(sources), process_set)
        results = requests.synchronize(requests.add(requests.allgather(
            [arrays.describe(*each) for each in zip(names, sources)],
            set_id(process_set, 'Allgather'), sources,
            lambda request: [arrays.taken(request, index, source)
                             for index, source in enumerate(sources)])))
        for result, target in zip(results, targets or ()):
            _copy_rows(result, target)
        return results

    shapes = [(leaf.shape[0] * process_set.size(), *leaf.shape[1:]) for leaf in leaves]
    return structure.unflatten(_run(collective, leaves, shapes))


def barrier(process_set=global_process_set):
    """Waits until all ranks of the process set have called barrier."""
    _check('Barrier', None, process_set)
    wait()
    requests.synchronize(requests.add(requests.barrier(set_id(process_set, 'Barrier'))))
