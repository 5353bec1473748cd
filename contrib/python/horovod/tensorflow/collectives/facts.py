# SPDX-License-Identifier: Apache-2.0
"""This rank's numbers as operations. A graph looks them up each time it runs, so it may run in
another job than the one it was made in."""

from horovod.tensorflow.native import ops


def rank_op(name=None):
    """This process's number in the job, int32."""
    return ops.horovod_rank(name=name)


def local_rank_op(name=None):
    """This process's number on its node, int32."""
    return ops.horovod_local_rank(name=name)


def size_op(process_set_id=0, name=None):
    """The number of ranks in the process set, int32."""
    return ops.horovod_size(process_set_id=process_set_id, name=name)


def local_size_op(name=None):
    """The number of processes on this node, int32."""
    return ops.horovod_local_size(name=name)


def process_set_included_op(process_set_id=0, name=None):
    """1 where this process is a member of the process set, else 0; int32."""
    return ops.horovod_process_set_included(process_set_id=process_set_id, name=name)
