# SPDX-License-Identifier: Apache-2.0
"""Wrong arguments of the Keras packages raise an error that names the argument."""

import wrong_arguments
from keras_case import Case, hvd, sgd

GOOD = {'value': lambda: [1.0, 2.0], 'root_rank': lambda: 0, 'optimizer': sgd,
        'file_path': lambda: '/', 'process_set': lambda: hvd.global_process_set,
        'filepath': lambda: '/nowhere'}
EXCUSED = {('add_process_set', 'process_set'),  # may also be ranks; the error has Horovod's text
           ('broadcast_global_variables', 'root_rank'),  # works in graphs of TensorFlow 1 only
           ('load_model', 'compression')}  # checked only if the file exists
EXCUSED |= {(name, argument) for name in wrong_arguments.functions_of(hvd)
            for argument in ('device_dense', 'device_sparse')}  # arguments without effect


class Arguments(Case):

    def test_each_wrong_argument_is_named_in_the_error(self):
        wrong_arguments.check(self, hvd, GOOD, EXCUSED)
