# SPDX-License-Identifier: Apache-2.0

from shared import Compressor, NoneCompressor, FP16Compressor
