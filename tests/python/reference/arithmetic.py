# SPDX-License-Identifier: Apache-2.0
"""Computes reductions in plain arithmetic, and the largest allowed error of a result.

Integers are exact: they are computed with Python's integers and then wrapped. Floats are computed
in double precision or better, from inputs that their type can represent. A result may differ only
by the roundings that the type and the number of ranks make necessary. Arrays of all float types are
float64 here; bool and integer arrays have their own type.
"""

import math

import numpy as np

INTEGERS = ('uint8', 'int8', 'uint16', 'int16', 'int32', 'int64', 'uint32', 'uint64')
FLOATS = ('float16', 'bfloat16', 'float32', 'float64')
ALL = INTEGERS + FLOATS + ('bool',)
OPS = ('Average', 'Sum', 'Min', 'Max', 'Product', 'Adasum')

# For each float type: the bits of its significand, and the exponent of its smallest positive
# number.
_SIGNIFICAND = {'float16': 11, 'bfloat16': 8, 'float32': 24, 'float64': 53}
_SMALLEST = {'float16': -24, 'bfloat16': -133, 'float32': -149, 'float64': -1074}
_PRECISE = np.longdouble


def unit(dtype):
    """Returns the largest relative error of one rounding to the type."""
    return 2.0 ** -_SIGNIFICAND[dtype]


def smallest(dtype):
    """Returns the smallest positive number of the type."""
    return 2.0 ** _SMALLEST[dtype]


def rounded(values, dtype):
    """Rounds to the nearest numbers of the type. Numbers that are too large for it stay as they
    are."""
    values = np.asarray(values, np.float64)
    exponent = np.maximum(np.frexp(values)[1] - _SIGNIFICAND[dtype], _SMALLEST[dtype])
    return np.ldexp(np.rint(np.ldexp(values, -exponent)), exponent)


def carrier(dtype):
    """Returns the NumPy type in which this module keeps arrays of the type."""
    return np.dtype('float64' if dtype in FLOATS else dtype)


def _whole(numbers, dtype):
    """Returns Python's integers as an array of the type, wrapped as in two's complement."""
    limits = np.iinfo(dtype)
    span = int(limits.max) - int(limits.min) + 1
    wrapped = [(number - int(limits.min)) % span + int(limits.min) for number in numbers]
    return np.array(wrapped, dtype)


def _quotient(number, divisor):
    """Divides exactly and truncates toward zero."""
    return -(-number // divisor) if number < 0 else number // divisor


def _truncated(number, limits):
    """Truncates a number to an integer within the limits of a type."""
    return min(max(math.trunc(number), int(limits.min)), int(limits.max))


def scaled_integers(values, factor, dtype, divisor=1):
    """Returns integers times ``factor`` divided by ``divisor``, computed in double precision and
    truncated. With the factor 1 the division is exact."""
    if factor == 1.0:
        flat = [_quotient(int(value), divisor) for value in values.ravel()]
    else:
        flat = [_truncated(float(value) * factor / divisor, np.iinfo(dtype))
                for value in values.ravel()]
    return np.array(flat, dtype).reshape(values.shape)


def _reduce_column(op, column):
    if op in ('Sum', 'Average'):
        return sum(column)
    return {'Min': min, 'Max': max, 'Product': math.prod}[op](column)


def _reduce_integers(op, dtype, inputs, pre, post):
    scaled = [scaled_integers(each, pre, dtype) for each in inputs]
    columns = zip(*([int(value) for value in each.ravel()] for each in scaled))
    result = _whole([_reduce_column(op, column) for column in columns], dtype)
    divisor = len(inputs) if op == 'Average' else 1
    return scaled_integers(result, post, dtype, divisor).reshape(inputs[0].shape)


def _reduce_booleans(op, inputs):
    return np.any(inputs, axis=0) if op in ('Sum', 'Max') else np.all(inputs, axis=0)


def _finite(values):
    """Returns the absolute values, for error bounds; 0 for values that are not finite."""
    magnitudes = np.abs(values)
    return np.where(np.isfinite(magnitudes), magnitudes, 0)


def _reduce_floats(op, dtype, inputs, pre, post):
    """Returns the result, the magnitude to which its rounding errors are relative, and the number
    of roundings."""
    wide = np.stack([np.asarray(each, _PRECISE) for each in inputs]) * _PRECISE(pre)
    count = len(inputs)
    if op in ('Sum', 'Average'):
        factor = _PRECISE(post) / (count if op == 'Average' else 1)
        return wide.sum(0) * factor, _finite(wide).sum(0) * abs(factor), count + 6
    if op == 'Product':
        result = wide.prod(0) * _PRECISE(post)
        return result, _finite(result), 3 * count + 4
    result = wide.min(0) if op == 'Min' else wide.max(0)  # NaN if any value is NaN, as in libhvd
    return result * _PRECISE(post), _finite(wide).max(0) * abs(_PRECISE(post)), 6


def _pair(left, right):
    """Returns the Adasum of two vectors. A vector is a pair of arrays: its values, and upper bounds
    of their absolute values."""
    (a, size_a), (b, size_b) = left, right
    dot, square_a, square_b = (a * b).sum(), (a * a).sum(), (b * b).sum()
    share_a = dot / square_a / 2 if square_a != 0 else 0
    share_b = dot / square_b / 2 if square_b != 0 else 0
    return (a * (1 - share_a) + b * (1 - share_b),
            size_a * (1 + abs(share_a)) + size_b * (1 + abs(share_b)))


def _adasum(inputs, pre, post):
    vectors = [np.asarray(each, _PRECISE) * _PRECISE(pre) for each in inputs]
    pairs = [(each, np.full(each.shape, math.sqrt((_finite(each) ** 2).sum()))) for each in vectors]
    levels = 0
    while len(pairs) > 1:
        pairs = [_pair(*two) for two in zip(pairs[::2], pairs[1::2])]
        levels += 1
    result, bound = pairs[0][0] * _PRECISE(post), pairs[0][1] * abs(_PRECISE(post))
    if levels and not all(np.isfinite(each).all() for each in inputs):
        result = np.full(result.shape, np.nan)
    return result, _finite(bound), 16 * (levels + 1)


def reduced(op, dtype, inputs, scale=(1.0, 1.0), wire=None):
    """Reduces arrays of the type, one of each rank. Returns the result and an array of the largest
    allowed absolute errors; 0 for integers and booleans. ``wire``: the 16-bit type in which floats
    travel between ranks, or None for their own type."""
    pre, post = scale
    if dtype == 'bool':
        return _reduce_booleans(op, inputs), 0
    if dtype in INTEGERS:
        return _reduce_integers(op, dtype, inputs, pre, post), 0
    with np.errstate(all='ignore'):
        if op == 'Adasum':
            result, bound, roundings = _adasum(inputs, pre, post)
        else:
            result, bound, roundings = _reduce_floats(op, dtype, inputs, pre, post)
        work = 'float64' if dtype == 'float64' and not wire else 'float32'
        error = roundings * unit(work) * bound
        types = {dtype} | ({wire} if wire else set())
        # Each rank rounds the values that it sends. The result is rounded once to each type.
        if wire not in (None, dtype):
            error = error + (roundings if op == 'Adasum' else len(inputs)) * unit(wire) * bound
        error = error + sum(unit(each) for each in types) * _finite(result)
        error = error + sum(smallest(each) for each in types) * (1 + abs(post)) * len(inputs)
    return np.asarray(result, np.float64), np.asarray(error, np.float64)


def divided_rows(values, factor, count, dtype):
    """Returns gathered rows of a float type, times ``factor`` and divided by ``count``, the number
    of ranks, and the largest allowed error."""
    exact = np.asarray(values, _PRECISE) * _PRECISE(factor) / count
    with np.errstate(all='ignore'):
        error = 5 * unit(dtype) * _finite(exact) + smallest(dtype)
    return np.asarray(exact, np.float64), np.asarray(error, np.float64)


def agree(result, expected, error):
    """Whether the arrays are equal, except for the allowed error. NaN equals NaN."""
    if result.shape != expected.shape or result.dtype != expected.dtype:
        return False
    if result.dtype.kind != 'f':
        return bool(np.array_equal(result, expected))
    with np.errstate(invalid='ignore'):
        near = np.abs(result - expected) <= error
    same = (result == expected) | (np.isnan(result) & np.isnan(expected))
    return bool(np.where(np.isfinite(expected), near, same).all())
