# SPDX-License-Identifier: Apache-2.0
"""Reduction of sparse COO tensors: the ranks gather each other's entries."""

import torch

from horovod.common.arguments import check_set
from horovod.common.basics import Average, Sum
from horovod.common.process_sets import global_process_set
from horovod.common.reductions import choose_op
from horovod.common.requests import synchronize, tensor_name
from horovod.torch.collectives.allgather import allgather_async
from horovod.torch.collectives.tensors import check

# The gathered indices are valid, so torch need not check them. Newer versions of torch warn if the
# caller does not say whether to check.
_UNCHECKED = ({'check_invariants': False}
              if hasattr(torch.sparse, 'check_sparse_tensor_invariants') else {})


def sparse_allreduce_async(tensor, name=None, op=None, process_set=global_process_set):
    """Starts the reduction of a sparse COO tensor over all ranks. Returns a function, not a handle,
    that waits and returns the result. The result is not coalesced: an index may occur once for
    each rank. op: Average or Sum; ValueError otherwise."""
    check(tensor)
    check_set(process_set)
    op = choose_op(op, None)
    if op not in (Average, Sum):
        raise ValueError('a sparse allreduce can only be hvd.Average or hvd.Sum')
    if op == Average and tensor.dtype is torch.bool:
        raise ValueError('there is no average of booleans; use hvd.Sum')
    name = tensor_name('sparse_allreduce', name, process_set)
    indices = allgather_async(tensor._indices().t().contiguous(), f'{name}.indices', process_set)
    values = allgather_async(tensor._values(), f'{name}.values', process_set)

    def wait():
        all_values = synchronize(values)
        all_indices = synchronize(indices).t()
        if op == Average:
            all_values = all_values / process_set.size()
        return torch.sparse_coo_tensor(all_indices, all_values, tensor.size(), **_UNCHECKED)

    return wait
