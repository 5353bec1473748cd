# SPDX-License-Identifier: Apache-2.0
"""Arrays of the plain reference as tensors of torch, and back."""

import torch

from reference.arithmetic import FLOATS

MOVED_ONLY = ('uint16', 'uint32', 'uint64')  # torch moves them and does not compute with them


def laid_out(values, layout):
    """The values in memory that is not plain."""
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
    if dtype in MOVED_ONLY:  # torch cannot lay these out
        return torch.from_numpy(values.copy())
    return laid_out(torch.from_numpy(values.copy()).to(getattr(torch, dtype)), layout)


def array(given):
    """The numbers, and the name of the dtype that they are of."""
    given = given.detach()
    name = str(given.dtype).split('.')[1]
    return (given.to(torch.float64) if name in FLOATS else given).numpy().copy(), name
