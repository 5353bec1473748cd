# SPDX-License-Identifier: Apache-2.0
"""Compression of floating point tensors to 16 bits while they travel between ranks."""

import tensorflow as tf

from horovod.common.compression import Compressor, NoneCompressor


class _CastCompressor(Compressor):
    """Casts floating point tensors to ``dtype`` and back; does not change other tensors."""

    dtype = None

    @classmethod
    def compress(cls, tensor):
        if not tensor.dtype.is_floating:
            return tensor, tensor.dtype
        return tf.cast(tensor, cls.dtype), tensor.dtype

    @staticmethod
    def decompress(tensor, ctx):
        return tf.cast(tensor, ctx)


class FP16Compressor(_CastCompressor):
    """IEEE half precision: 11 bits of mantissa, largest value 65504."""

    dtype = tf.float16


class BF16Compressor(_CastCompressor):
    """bfloat16: 8 bits of mantissa, the range of float32."""

    dtype = tf.bfloat16


class Compression:
    """The compressors to pass as ``compression=``."""

    none = NoneCompressor
    fp16 = FP16Compressor
    bf16 = BF16Compressor
