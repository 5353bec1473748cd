# SPDX-License-Identifier: Apache-2.0
"""Operations that return the numbers of this rank. A graph evaluates them each time it runs, so it
can run in another job than the one in which it was built."""

from horovod.tensorflow.native import ops


def rank_op(name=None):
    """The number of this process in the job, as an int32 tensor."""
    return ops.horovod_rank(name=name)


def local_rank_op(name=None):
    """The number of this process on its node, as an int32 tensor."""
    return ops.horovod_local_rank(name=name)


def size_op(process_set_id=0, name=None):
    """The number of ranks in the process set, as an int32 tensor."""
    return ops.horovod_size(process_set_id=process_set_id, name=name)


def local_size_op(name=None):
    """The number of ranks on this node, as an int32 tensor."""
    return ops.horovod_local_size(name=name)


def process_set_included_op(process_set_id=0, name=None):
    """1 if this process is a member of the process set, otherwise 0, as an int32 tensor."""
    return ops.horovod_process_set_included(process_set_id=process_set_id, name=name)
