# SPDX-License-Identifier: Apache-2.0
"""The input of each rank. Every rank can compute the inputs of all ranks and so check its result.

Values are small whole numbers: sums and products of a few ranks are exact in every dtype and in
any order.
"""

import torch

from horovod.common.library import DTYPES

FLOATS = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
ALL = [getattr(torch, name) for name in DTYPES if hasattr(torch, name)]
# torch has few operations for its newer unsigned types, so tests only move them.
MOVED_ONLY = [getattr(torch, name) for name in ('uint16', 'uint32', 'uint64')
              if hasattr(torch, name)]
NUMBERS = [dtype for dtype in ALL if dtype is not torch.bool and dtype not in MOVED_ONLY]


def values(rank, shape, dtype=torch.float32, salt=0):
    """Returns the tensor of a rank. Different values of ``salt`` give different tensors."""
    generator = torch.Generator().manual_seed(1000 * salt + rank + 1)
    whole = torch.randint(1, 4, tuple(shape), generator=generator)
    if dtype is torch.bool:
        return whole > 2
    return whole.to(dtype)


def stacked(size, shape, dtype=torch.float32, salt=0):
    """Returns the tensors of all ranks, one row for each rank."""
    return torch.stack([values(rank, shape, dtype, salt) for rank in range(size)])


def nearly(result, expected):
    """Whether two tensors are equal, except for the rounding of one multiplication: an average is a
    sum times 1/size, which is exact only if the size is a power of two."""
    floating = result.dtype.is_floating_point
    tolerance = 2 * torch.finfo(result.dtype).eps if floating else 0
    return torch.allclose(result.double(), expected.double(), rtol=tolerance, atol=0)
