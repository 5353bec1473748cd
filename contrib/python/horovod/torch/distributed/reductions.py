# SPDX-License-Identifier: Apache-2.0
"""Translates torch's reductions to those of libhvd."""

from ctypes import c_double

import torch
import torch.distributed as dist

from horovod.torch.collectives.tensors import is_supported

_TYPES = dist.ReduceOp.RedOpType
_ONE = c_double(1)


def _unscaled(number):
    return number, _ONE, _ONE


# {torch's number: (word, (libhvd's number, prescale factor, postscale factor))}
_REDUCTIONS = {int(_TYPES.AVG): ('average', _unscaled(0)), int(_TYPES.SUM): ('sum', _unscaled(1)),
               int(_TYPES.MIN): ('min', _unscaled(3)), int(_TYPES.MAX): ('max', _unscaled(4)),
               int(_TYPES.PRODUCT): ('product', _unscaled(5)),
               int(_TYPES.BAND): ('and', _unscaled(6)), int(_TYPES.BOR): ('or', _unscaled(7)),
               int(_TYPES.BXOR): ('xor', _unscaled(8))}
_SUM = _REDUCTIONS[int(_TYPES.SUM)]
_PREMUL_SUM = int(getattr(_TYPES, 'PREMUL_SUM', -1))
# Reductions of complex numbers that can reduce real and imaginary parts separately.
_LINEAR = ('average', 'sum', 'scaled sum')


def _scaled_sum(op):
    """Returns the reduction for PREMUL_SUM, with the factor as the prescale factor."""
    tell = getattr(op, '__getstate__', None)
    state = tell() if tell else None
    if state is None:
        raise NotImplementedError(
            f'torch {torch.__version__} gives the factor of PREMUL_SUM to NCCL only; newer '
            'releases also give it to the backend hvd: multiply the tensor before the call')
    return 'scaled sum', (1, c_double(float(state[1])), _ONE)


def find(options, tensor):
    """Returns the reduction as (word, libhvd's arguments). ``options``: torch's options of the
    call, or the reduction itself. ValueError if libhvd cannot reduce the tensor's dtype;
    NotImplementedError for an unsupported reduction."""
    op = getattr(options, 'reduceOp', options)
    if op == _TYPES.SUM and is_supported(tensor.dtype):
        return _SUM  # torch needs long to convert the op to a number
    number = int(getattr(op, 'op', op))
    if number == _PREMUL_SUM:
        word, arguments = _scaled_sum(op)
    elif number in _REDUCTIONS:
        word, arguments = _REDUCTIONS[number]
    else:
        raise NotImplementedError(
            f'the backend hvd has no {getattr(op, "op", op)}: it reduces by SUM, AVG, MIN, MAX, '
            'PRODUCT, BAND, BOR, BXOR and PREMUL_SUM')
    if not is_supported(tensor.dtype) and not (tensor.is_complex() and word in _LINEAR):
        raise ValueError(f'the backend hvd cannot reduce tensors of {tensor.dtype} to their {word}')
    return word, arguments
