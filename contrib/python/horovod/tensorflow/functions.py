# SPDX-License-Identifier: Apache-2.0
"""Broadcasts and gathers a model's variables and any other objects."""

import tensorflow as tf

from horovod.common import objects
from horovod.common.process_sets import global_process_set
from horovod.tensorflow.collectives.broadcast import broadcast_


def broadcast_variables(variables, root_rank, process_set=global_process_set, inplace=False):
    """Gives every rank the root's variables. In a graph, returns the operation that does so.
    ``inplace`` is accepted as Horovod does: the variables stay the same either way."""
    updates = broadcast_(variables, root_rank, process_set=process_set)
    return None if tf.executing_eagerly() else tf.group(*updates)


def broadcast_global_variables(root_rank):
    """The operation that gives every rank the root's global variables, of the default graph of
    TensorFlow 1; RuntimeError in eager mode, which has no such variables."""
    if tf.executing_eagerly():
        raise RuntimeError(
            'hvd.broadcast_global_variables() does not support eager execution. Please use '
            '`hvd.broadcast_variables(<model/optimizer variables>)` instead.')
    return broadcast_variables(tf.compat.v1.global_variables(), root_rank)


class BroadcastGlobalVariablesHook(tf.compat.v1.train.SessionRunHook):
    """Gives every rank the root's variables once a session of TensorFlow 1 has begun, whether
    they were initialised or restored from a checkpoint. ``device`` is as in tf.device."""

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
    """The root's object, which must be picklable; the other ranks may pass anything. It travels
    at once, also while a graph is being made; ``session`` is accepted and has no effect."""
    return objects.broadcast_object(obj, root_rank, name, process_set)


def broadcast_object_fn(root_rank=0, session=None, name=None, process_set=global_process_set):
    """A function of an object that does the same."""
    return lambda obj: broadcast_object(obj, root_rank, session, name, process_set)


def allgather_object(obj, session=None, name=None, process_set=global_process_set):
    """The list of the ranks' objects, which must be picklable, in rank order."""
    return objects.allgather_object(obj, name, process_set)
