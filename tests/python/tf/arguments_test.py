# SPDX-License-Identifier: Apache-2.0
"""Wrong arguments of horovod.tensorflow raise an error that names the argument."""

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
# The argument may also be a list of ranks, and its error has Horovod's text.
EXCUSED = {('add_process_set', 'process_set')}
# TensorFlow converts these arguments to tensors and raises its own errors.
EXCUSED |= {(name, argument) for name in wrong_arguments.functions_of(hvd)
            for argument in ('tensor', 'tensors', 'splits', 'device_dense', 'device_sparse')}
EXCUSED |= {('broadcast_global_variables', 'root_rank')}  # works in graphs of TensorFlow 1 only
# The function that broadcast_object_fn returns checks them when it is called.
EXCUSED |= {('broadcast_object_fn', argument) for argument in ('root_rank', 'name', 'process_set')}
# TensorFlow checks the names of operations.
EXCUSED |= {(name, 'name') for name in wrong_arguments.functions_of(hvd) if name.endswith('_op')}
EXCUSED |= {('handle_average_backwards_compatibility', 'average')}


class Arguments(Case):

    def test_each_wrong_argument_is_named_in_the_error(self):
        wrong_arguments.check(self, hvd, GOOD, EXCUSED)
