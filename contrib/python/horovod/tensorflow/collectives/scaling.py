# SPDX-License-Identifier: Apache-2.0
"""Scales tensors that libhvd does not scale: gathered rows of sparse tensors, and gradients."""

import tensorflow as tf


def scaled(values, factor=1.0, divisor=None):
    """Returns values * factor / divisor, computed in double precision for integers and in single
    precision for 16-bit floats, and rounded once. ``factor`` and ``divisor`` are numbers or scalar
    tensors.

    As in libhvd, products of integers are truncated and booleans are not multiplied. Quotients of
    integers are floating point numbers, of the type that TensorFlow's division gives: the terms of
    an average must not be truncated before they are added up.
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
    """Returns the number in this dtype. tf.cast would first round a Python float to float32."""
    return tf.cast(number, kind) if tf.is_tensor(number) else tf.constant(number, kind)


def _truncated(values, kind):
    """Converts values to integers of this dtype; values that are too large become its largest
    integer. tf.saturate_cast is not enough: float64 cannot hold the largest int64 exactly."""
    is_too_large = values >= tf.constant(float(kind.max), values.dtype)
    return tf.where(is_too_large, tf.constant(kind.max, kind), tf.saturate_cast(values, kind))
