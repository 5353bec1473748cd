# SPDX-License-Identifier: Apache-2.0
"""A model of one layer, data that differ between ranks, and the line that each rank prints."""

import os


def places():
    """Returns the number of ranks on a node, and of nodes, as Lightning wants to be told them."""
    local_size = int(os.environ['LOCAL_WORLD_SIZE'])
    return local_size, int(os.environ['WORLD_SIZE']) // local_size


def images(rank):
    import torch
    generator = torch.Generator().manual_seed(rank)
    x = torch.randn(32, 4, generator=generator)
    return torch.utils.data.TensorDataset(x, x.sum(1, keepdim=True) + rank)


def layer():
    import torch
    torch.manual_seed(1)
    return torch.nn.Linear(4, 1)


def tell(rank, size, backend, weights):
    """Ranks that have averaged their gradients print the same weights."""
    print(f'rank {rank} of {size} over {backend}: {float(weights.sum()):.6f}', flush=True)


def tell_torch(weights):
    import torch.distributed as dist
    tell(dist.get_rank(), dist.get_world_size(), dist.get_backend(), weights.detach())
