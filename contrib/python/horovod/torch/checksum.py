# SPDX-License-Identifier: Apache-2.0
"""A checksum of parameters: equal if the parameters are equal bit by bit, whatever the device and
the number of threads."""

from collections import defaultdict

import torch

REMEDY = 'hvd.broadcast_parameters(model.state_dict(), root_rank=0)'
_INTEGERS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64, 16: torch.int64}


def _is_plain(parameter):
    """Whether the parameter has all its values in memory of this rank: a DTensor, a lazy, a sparse
    and a meta tensor have not."""
    return (type(parameter) in (torch.Tensor, torch.nn.Parameter)
            and parameter.layout is torch.strided and parameter.numel() > 0
            and parameter.device.type in ('cpu', 'cuda'))


def _last_row(tensor):
    """Returns the last elements along the last dimension, a view. One row is enough, because
    initial values differ everywhere; the first row may be the zeros of an Embedding with
    padding_idx."""
    while tensor.dim() > 1:
        tensor = tensor[-1]
    return tensor.reshape(-1)


def _bits_of(row):
    return row.contiguous().view(_INTEGERS[row.element_size()])


def checksum(parameters):
    """Returns an integer. Reads one row of each parameter, with a few kernels and one copy to the
    host for each device and size of elements."""
    rows = defaultdict(list)
    for parameter in parameters:
        if _is_plain(parameter):
            bits = _bits_of(_last_row(parameter.detach()))
            rows[bits.device, bits.dtype].append(bits)
    return sum(int(torch.cat(each).sum(dtype=torch.int64)) for each in rows.values())
