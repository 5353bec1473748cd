# SPDX-License-Identifier: Apache-2.0
"""Broadcasts of variables, and broadcast and allgather of other objects."""

import tensorflow as tf

from horovod.common import objects
from horovod.common.process_sets import global_process_set
from horovod.tensorflow.collectives.broadcast import broadcast_


def broadcast_variables(variables, root_rank, process_set=global_process_set, inplace=False):
    """Copies the values of variables from rank root_rank to all ranks; collective.

    In eager mode returns None; in a graph returns the operation that copies. All ranks pass the
    same variables in the same order. ``inplace`` is accepted for compatibility: the variables are
    always changed in place.
    """
    updates = broadcast_(variables, root_rank, process_set=process_set)
    return None if tf.executing_eagerly() else tf.group(*updates)


def broadcast_global_variables(root_rank):
    """Returns the operation that copies the global variables of TensorFlow 1's default graph from
    rank root_rank to all ranks. RuntimeError in eager mode, which has no global variables."""
    if tf.executing_eagerly():
        raise RuntimeError(
            'hvd.broadcast_global_variables() does not support eager execution. Please use '
            '`hvd.broadcast_variables(<model/optimizer variables>)` instead.')
    return broadcast_variables(tf.compat.v1.global_variables(), root_rank)


class BroadcastGlobalVariablesHook(tf.compat.v1.train.SessionRunHook):
    """Copies the global variables of rank root_rank to all ranks when a session of TensorFlow 1 has
    been created, after they were initialised or restored from a checkpoint. ``device``: where to
    place the operation, as for tf.device."""

    def __init__(self, root_rank, device=''):
        super().__init__()
        self.root_rank = root_rank
        self.device = device
        self.bcast_op = None

    def begin(self):
        graph = tf.compat.v1.get_default_graph()
        if self.bcast_op is None or self.bcast_op.graph is not graph:
            with tf.device(self.device):
                self.bcast_op = broadcast_global_variables(self.root_rank)

    def after_create_session(self, session, coord):
        session.run(self.bcast_op)


def broadcast_object(obj, root_rank=0, session=None, name=None, process_set=global_process_set):
    """Returns the object of rank root_rank on all ranks; collective. The root's object must be
    picklable; on the other ranks ``obj`` is ignored. Runs at once, also while a graph is being
    built. ``session`` is accepted for compatibility and has no effect."""
    return objects.broadcast_object(obj, root_rank, name, process_set)


def broadcast_object_fn(root_rank=0, session=None, name=None, process_set=global_process_set):
    """Returns a function of one argument, the object, that calls broadcast_object."""
    return lambda obj: broadcast_object(obj, root_rank, session, name, process_set)


def allgather_object(obj, session=None, name=None, process_set=global_process_set):
    """Returns the list of the objects of all ranks, in rank order; collective. The objects must be
    picklable. ``session`` is accepted for compatibility and has no effect."""
    return objects.allgather_object(obj, name, process_set)
