# SPDX-License-Identifier: Apache-2.0
"""Converts arrays of the reference to tensors of torch, and back."""

import torch

from reference.arithmetic import FLOATS

MOVED_ONLY = ('uint16', 'uint32', 'uint64')  # torch can move these types, but not compute with them


def laid_out(values, layout):
    """Returns a tensor with these values and this memory layout."""
    if layout == 'transposed' and values.dim() > 1:
        return values.transpose(0, -1).contiguous().transpose(0, -1)
    if layout == 'strided' and values.dim() > 0:
        wide = values.new_zeros((*values.shape[:-1], 2 * values.shape[-1]))
        wide[..., ::2] = values
        return wide[..., ::2]
    if layout == 'offset':
        longer = torch.cat([values.new_zeros(3), values.reshape(-1)])
        return longer[3:].view(values.shape)
    return values


def tensor(values, dtype, layout='plain'):
    if dtype in MOVED_ONLY:  # torch lacks the operations for other layouts
        return torch.from_numpy(values.copy())
    return laid_out(torch.from_numpy(values.copy()).to(getattr(torch, dtype)), layout)


def array(given):
    """Returns the numbers of a tensor, and the name of its dtype."""
    given = given.detach()
    name = str(given.dtype).split('.')[1]
    return (given.to(torch.float64) if name in FLOATS else given).numpy().copy(), name
