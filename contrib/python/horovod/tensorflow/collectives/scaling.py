# SPDX-License-Identifier: Apache-2.0
"""Multiplies and divides tensors that libhvd does not scale: gathered rows of sparse tensors, and
gradients."""

import tensorflow as tf


def scaled(values, factor=1.0, divisor=None):
    """values * factor / divisor, computed in double precision for integers and in single precision
    for 16-bit floats, and rounded once. The factor and the divisor are numbers or scalar tensors.

    Products of integers are truncated and those of booleans left as they are, as in libhvd.
    Quotients of integers are floating point, of the type that TensorFlow's division gives: the
    parts of an average that add up to a whole number must not be truncated one by one.
    """
    kind = values.dtype
    has_factor = kind != tf.bool and (tf.is_tensor(factor) or factor != 1.0)
    if not has_factor and divisor is None:
        return values
    wide = tf.float64 if kind.is_integer else tf.float32 if kind.size == 2 else kind
    result = tf.cast(values, wide)
    if has_factor:
        result = result * _as(wide, factor)
    if divisor is not None:
        result = result / _as(wide, divisor)
    if not kind.is_integer:
        return tf.cast(result, kind)
    if divisor is None:
        return _truncated(result, kind)
    return tf.cast(result, tf.float32 if kind.size <= 2 else tf.float64)


def _as(kind, number):
    """The number in this dtype. tf.cast alone would take Python's numbers for single precision."""
    return tf.cast(number, kind) if tf.is_tensor(number) else tf.constant(number, kind)


def _truncated(values, kind):
    """Converts to integers of this kind. Values that are too large become the largest integer;
    double precision may not hold it, so tf.saturate_cast alone would not reach it."""
    is_too_large = values >= tf.constant(float(kind.max), values.dtype)
    return tf.where(is_too_large, tf.constant(kind.max, kind), tf.saturate_cast(values, kind))
