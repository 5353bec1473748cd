# SPDX-License-Identifier: Apache-2.0
"""Compression of floating point arrays to 16 bits while they travel between ranks."""

import jax.numpy as jnp

from horovod.common import compression as common
from horovod.common.compression import Compressor, NoneCompressor


class _Caster(Compressor):
    """Casts floating point arrays to ``wire_dtype``, and the results back."""

    wire_dtype = None

    @classmethod
    def compress(cls, tensor):
        if jnp.issubdtype(tensor.dtype, jnp.floating):
            return tensor.astype(jnp.dtype(cls.wire_dtype)), tensor.dtype
        return tensor, tensor.dtype

    @staticmethod
    def decompress(tensor, ctx):
        return tensor.astype(ctx)


class FP16Compressor(_Caster):
    """IEEE half precision: 11 bits of mantissa, largest value 65504."""

    wire_dtype = 'float16'


class BF16Compressor(_Caster):
    """bfloat16: 8 bits of mantissa, the range of float32."""

    wire_dtype = 'bfloat16'


class Compression:
    """The compressors to pass as ``compression=``."""

    none = NoneCompressor
    fp16 = FP16Compressor
    bf16 = BF16Compressor


def prepare_all(compression, leaves, op):
    """Calls horovod.common.compression.prepare for each array; returns one tuple for each of its
    three results."""
    return tuple(zip(*(common.prepare(compression, leaf, leaf.dtype == jnp.float32, op)
                       for leaf in leaves)))
