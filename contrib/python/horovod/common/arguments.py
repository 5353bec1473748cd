# SPDX-License-Identifier: Apache-2.0
"""Arguments of collectives that would reach C: a sentence for each that is of another type."""

import operator

OPS = ('Average', 'Sum', 'Adasum', 'Min', 'Max', 'Product')  # by number


def _whole(value):
    """The number, or None where it is none."""
    try:
        return None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        return None


def _found(name, value):
    return f'{name} is {value!r}, of type {type(value).__name__}'


def check_op(op):
    """The number of a reduction; TypeError or ValueError."""
    number = _whole(op)
    expected = f'expected one of {", ".join(f"hvd.{name}" for name in OPS)}'
    if number is None:
        raise TypeError(f'{_found("op", op)}: {expected}')
    if not 0 <= number < len(OPS):
        raise ValueError(f'op is {op!r}: {expected}')
    return number


def check_rank(name, rank):
    """The number of a rank; TypeError."""
    number = _whole(rank)
    if number is None:
        raise TypeError(f'{_found(name, rank)}: expected the number of a rank')
    return number


def check_scale(scale):
    """The pair (prescale_factor, postscale_factor); TypeError."""
    for name, factor in zip(('prescale_factor', 'postscale_factor'), scale):
        if not hasattr(type(factor), '__float__'):
            raise TypeError(f'{_found(name, factor)}: expected a number')
    return tuple(map(float, scale))
