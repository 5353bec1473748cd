# SPDX-License-Identifier: Apache-2.0
"""Fewer bytes on the wire: floating point tensors travel as 16-bit floats."""

import torch

from horovod.common import compression as common
from horovod.common.compression import Compressor, NoneCompressor


class _CastCompressor(Compressor):
    """Casts floating point tensors to ``dtype`` and back; leaves others alone."""

    dtype = None

    @classmethod
    def compress(cls, tensor):
        if not tensor.dtype.is_floating_point:
            return tensor, tensor.dtype
        return tensor.to(cls.dtype), tensor.dtype

    @staticmethod
    def decompress(tensor, ctx):
        return tensor.to(ctx)


class FP16Compressor(_CastCompressor):
    """IEEE half precision: 11 bits of mantissa, largest value 65504."""

    dtype = torch.float16
    wire_dtype = 'float16'


class BF16Compressor(_CastCompressor):
    """bfloat16: 8 bits of mantissa, the range of float32."""

    dtype = torch.bfloat16
    wire_dtype = 'bfloat16'


class Compression:
    """The compressors to pass as ``compression=``."""

    none = NoneCompressor
    fp16 = FP16Compressor
    bf16 = BF16Compressor


def prepare(compression, tensor, op):
    """As horovod.common.compression.prepare. A GPU casts by itself: what libhvd is to cast goes
    through host memory where a rank has no kernels for it."""
    return common.prepare(compression, tensor, tensor.dtype is torch.float32 and tensor.is_cpu, op)


def prepare_all(compression, tensors, op):
    """The same of several tensors, as three tuples."""
    prepared = [prepare(compression, tensor, op) for tensor in tensors]
    return tuple(zip(*prepared)) if prepared else ((), (), ())
