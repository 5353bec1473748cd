# SPDX-License-Identifier: Apache-2.0
"""Compression of floating point tensors to 16 bits while they travel between ranks."""

import torch

from horovod.common import compression as common
from horovod.common.compression import Compressor, NoneCompressor


class _CastCompressor(Compressor):
    """Casts floating point tensors to ``dtype`` and back; does not change other tensors."""

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
    """Like horovod.common.compression.prepare. Tensors on a GPU are cast by torch: on a rank that
    lacks libhvd's GPU kernels, a cast by libhvd would go through host memory."""
    return common.prepare(compression, tensor, tensor.dtype is torch.float32 and tensor.is_cpu, op)


def prepare_all(compression, tensors, op):
    """Calls prepare for each tensor; returns one tuple for each of its three results."""
    prepared = [prepare(compression, tensor, op) for tensor in tensors]
    return tuple(zip(*prepared)) if prepared else ((), (), ())
