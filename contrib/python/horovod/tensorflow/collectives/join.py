# SPDX-License-Identifier: Apache-2.0
"""join: lets a rank without more data wait for the other ranks."""

import tensorflow as tf

from horovod.common.library import SET_GLOBAL
from horovod.common.requests import restart_names
from horovod.tensorflow.native import ops


def join():
    """Reports that this rank has no more data, and blocks until all ranks have joined. Until then,
    this rank takes part with zeros in the allreduces of the other ranks, so ranks may have
    different numbers of batches. Returns the rank that joined last, as an int32 tensor."""
    if not tf.executing_eagerly():
        return ops.horovod_join()
    last_rank = ops.horovod_join(blocks=True)
    restart_names(SET_GLOBAL)
    return last_rank
