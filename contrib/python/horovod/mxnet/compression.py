# SPDX-License-Identifier: Apache-2.0
"""Fewer bytes on the wire: floating point arrays travel as 16-bit floats."""

import numpy as np

from horovod.common import compression as common
from horovod.common.compression import Compressor, NoneCompressor
from horovod.mxnet.arrays import is_host


class FP16Compressor(Compressor):
    """IEEE half precision: 11 bits of mantissa, largest value 65504. Leaves arrays that are not of
    floating point alone."""

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
    """What horovod.common.compression.prepare returns for each of the arrays, as three tuples. GPUs
    cast themselves, so that half as many bytes leave them."""
    return tuple(zip(*(common.prepare(
        compression, tensor, np.dtype(tensor.dtype) == np.float32 and is_host(tensor), op)
                       for tensor in tensors)))
