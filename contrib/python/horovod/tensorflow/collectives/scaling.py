# SPDX-License-Identifier: Apache-2.0
"""Products and quotients of tensors that libhvd does not scale: rows of sparse tensors that were
gathered, and gradients."""

import tensorflow as tf


def scaled(values, factor=1.0, divisor=None):
    """values * factor / divisor, computed in double precision for integers and in single precision
    for 16-bit floats, and rounded once. The factor and the divisor are numbers or scalar tensors.

    Products of integers are truncated, as in libhvd. Quotients of integers are floating point, of
    the type that TensorFlow's division gives: the parts of an average that add up to a whole
    number must not be truncated one by one.
    """
    has_factor = tf.is_tensor(factor) or factor != 1.0
    if not has_factor and divisor is None:
        return values
    kind = values.dtype
    wide = tf.float64 if kind.is_integer else tf.float32 if kind.size == 2 else kind
    result = tf.cast(values, wide)
    if has_factor:
        result = result * tf.cast(factor, wide)
    if divisor is not None:
        result = result / tf.cast(divisor, wide)
    if not kind.is_integer:
        return tf.cast(result, kind)
    if divisor is None:
        return tf.saturate_cast(result, kind)
    return tf.cast(result, tf.float32 if kind.size <= 2 else tf.float64)
