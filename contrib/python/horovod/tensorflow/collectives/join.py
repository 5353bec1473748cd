# SPDX-License-Identifier: Apache-2.0
"""join: a rank has no more data."""

import tensorflow as tf

from horovod.common.library import SET_GLOBAL
from horovod.common.requests import restart_names
from horovod.tensorflow.native import ops


def join():
    """Reports that this rank has no more data, and waits until all ranks have done so. Meanwhile it
    contributes zeros to the allreduces of the other ranks. Returns the rank that joined last,
    int32."""
    if not tf.executing_eagerly():
        return ops.horovod_join()
    last_rank = ops.horovod_join(blocks=True)
    restart_names(SET_GLOBAL)
    return last_rank
