# SPDX-License-Identifier: Apache-2.0
"""Compression of floating point arrays to 16 bits while they travel between ranks."""

import numpy as np

from horovod.common import compression as common
from horovod.common.compression import Compressor, NoneCompressor
from horovod.mxnet.arrays import is_host


class FP16Compressor(Compressor):
    """IEEE half precision: 11 bits of mantissa, largest value 65504. Casts only floating point
    arrays."""

    wire_dtype = 'float16'

    @staticmethod
    def compress(tensor):
        if np.issubdtype(tensor.dtype, np.floating):
            return tensor.astype(np.float16, copy=False), tensor.dtype
        return tensor, tensor.dtype

    @staticmethod
    def decompress(tensor, ctx):
        return tensor.astype(ctx, copy=False)


class Compression:
    """The compressors to pass as ``compression=``."""

    none = NoneCompressor
    fp16 = FP16Compressor


def prepare_all(compression, tensors, op):
    """Calls horovod.common.compression.prepare for each array; returns one tuple for each of its
    three results. Arrays on a GPU are cast on the GPU, so that half as many bytes leave it."""
    return tuple(zip(*(common.prepare(
        compression, tensor, np.dtype(tensor.dtype) == np.float32 and is_host(tensor), op)
                       for tensor in tensors)))
