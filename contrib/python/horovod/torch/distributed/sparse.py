# SPDX-License-Identifier: Apache-2.0
"""allreduce of sparse tensors: each rank gathers the indices and values of all ranks and adds them
up."""

import torch

from horovod.torch.distributed.memory import write


def allreduce(group, tensor, word, options):
    """Starts the allreduce of a sparse tensor in place; returns its Work. ``word``: the reduction,
    'sum' or 'average'; NotImplementedError otherwise."""
    if word not in ('sum', 'average'):
        raise NotImplementedError(f'sparse tensors are reduced by SUM and AVG, not by {word}')
    own = tensor.detach().coalesce()
    indices, values = own.indices(), own.values()
    counts = torch.empty(group.size(), dtype=torch.int64)
    group.all_gather_single(counts, torch.tensor([indices.shape[1]])).wait()
    all_indices = [indices.new_empty((len(indices), count)) for count in counts.tolist()]
    all_values = [values.new_empty((count, *values.shape[1:])) for count in counts.tolist()]
    first = group.allgather([all_indices], [indices])

    def add_up():
        first.wait()
        total = torch.sparse_coo_tensor(torch.cat(all_indices, 1), torch.cat(all_values),
                                        tensor.shape).coalesce()
        write(tensor, total / group.size() if word == 'average' else total)

    return group.gather_all([all_values], [values], [tensor], options, add_up)
