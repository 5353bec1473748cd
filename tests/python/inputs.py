# SPDX-License-Identifier: Apache-2.0
"""What each rank puts in, computable on every rank, so that each can check what comes out.

Values are small whole numbers: sums and products of a few ranks are exact in every dtype and in
any order.
"""

import torch

from horovod.common.library import DTYPES

FLOATS = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
ALL = [getattr(torch, name) for name in DTYPES if hasattr(torch, name)]
# torch can do little with its newer unsigned types; they are moved, not computed with.
MOVED_ONLY = [getattr(torch, name) for name in ('uint16', 'uint32', 'uint64')
              if hasattr(torch, name)]
NUMBERS = [dtype for dtype in ALL if dtype is not torch.bool and dtype not in MOVED_ONLY]


def values(rank, shape, dtype=torch.float32, salt=0):
    """The tensor of a rank; ``salt`` tells several of one shape apart."""
    generator = torch.Generator().manual_seed(1000 * salt + rank + 1)
    whole = torch.randint(1, 4, tuple(shape), generator=generator)
    if dtype is torch.bool:
        return whole > 2
    return whole.to(dtype)


def stacked(size, shape, dtype=torch.float32, salt=0):
    """The tensors of all ranks, one row each."""
    return torch.stack([values(rank, shape, dtype, salt) for rank in range(size)])


def nearly(result, expected):
    """Whether two tensors are equal but for the rounding of one multiplication: an average is a
    sum times 1/size, which is not exact unless the size is a power of two."""
    floating = result.dtype.is_floating_point
    tolerance = 2 * torch.finfo(result.dtype).eps if floating else 0
    return torch.allclose(result.double(), expected.double(), rtol=tolerance, atol=0)
