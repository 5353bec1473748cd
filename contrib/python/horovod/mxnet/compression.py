# SPDX-License-Identifier: Apache-2.0
"""Fewer bytes on the wire: floating point arrays travel as 16-bit floats."""

import numpy as np

from horovod.common.compression import Compressor, NoneCompressor


class FP16Compressor(Compressor):
    """IEEE half precision: 11 bits of mantissa, largest value 65504. Leaves arrays that are not of
    floating point alone."""

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
