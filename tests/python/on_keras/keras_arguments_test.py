# SPDX-License-Identifier: Apache-2.0
"""Wrong arguments of the Keras packages are told in a sentence."""

import wrong_arguments
from keras_case import Case, hvd, sgd

GOOD = {'value': lambda: [1.0, 2.0], 'root_rank': lambda: 0, 'optimizer': sgd,
        'file_path': lambda: '/', 'process_set': lambda: hvd.global_process_set,
        'filepath': lambda: '/nowhere'}
EXCUSED = {('add_process_set', 'process_set'),  # takes ranks, and has Horovod's text
           ('broadcast_global_variables', 'root_rank'),  # for graphs of TensorFlow 1
           ('load_model', 'compression')}  # which is for a file that is there
EXCUSED |= {(name, argument) for name in wrong_arguments.functions_of(hvd)
            for argument in ('device_dense', 'device_sparse')}  # not needed


class Arguments(Case):

    def test_each_that_is_wrong_is_named(self):
        wrong_arguments.check(self, hvd, GOOD, EXCUSED)
