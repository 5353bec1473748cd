# SPDX-License-Identifier: Apache-2.0
"""Wrong arguments of horovod.tensorflow are told in a sentence."""

import tensorflow as tf

import horovod.tensorflow as hvd
import wrong_arguments
from tf.case import Case


def optimizer():
    return tf.compat.v1.train.GradientDescentOptimizer(0.1)


GOOD = {'tensor': lambda: tf.ones((4, 2)), 'tensors': lambda: [tf.ones((4, 2))],
        'root_rank': lambda: 0, 'obj': lambda: 1, 'optimizer': optimizer,
        'variables': lambda: [tf.Variable(1.0)], 'file_path': lambda: '/',
        'gradtape': tf.GradientTape, 'op': lambda: None, 'average': lambda: None,
        'process_set': lambda: hvd.global_process_set}
EXCUSED = {('add_process_set', 'process_set')}  # takes ranks, and has Horovod's text
# Anything that TensorFlow makes a tensor of is one; it says itself what it cannot use.
EXCUSED |= {(name, argument) for name in wrong_arguments.functions_of(hvd)
            for argument in ('tensor', 'tensors', 'splits', 'device_dense', 'device_sparse')}
EXCUSED |= {('broadcast_global_variables', 'root_rank')}  # for graphs of TensorFlow 1
# Functions that look when what they make is called, and names of operations.
EXCUSED |= {('broadcast_object_fn', argument) for argument in ('root_rank', 'name', 'process_set')}
EXCUSED |= {(name, 'name') for name in wrong_arguments.functions_of(hvd) if name.endswith('_op')}
EXCUSED |= {('handle_average_backwards_compatibility', 'average')}


class Arguments(Case):

    def test_each_that_is_wrong_is_named(self):
        wrong_arguments.check(self, hvd, GOOD, EXCUSED)
