# SPDX-License-Identifier: Apache-2.0
"""What a compressor is, for all front ends; each has its own that cast."""


class Compressor:
    """compress returns a tensor and a context; decompress undoes it with that context."""

    @staticmethod
    def compress(tensor):
        raise NotImplementedError

    @staticmethod
    def decompress(tensor, ctx):
        raise NotImplementedError


class NoneCompressor(Compressor):
    """Leaves tensors as they are."""

    @staticmethod
    def compress(tensor):
        return tensor, None

    @staticmethod
    def decompress(tensor, ctx):
        return tensor
