# SPDX-License-Identifier: Apache-2.0
"""Wrong arguments of horovod.mxnet raise an error that names the argument."""

import mxnet as mx

import horovod.mxnet as hvd
import wrong_arguments
from mxnet_case import Case

GOOD = {'tensor': lambda: mx.nd.ones((4, 2)), 'tensors': lambda: [mx.nd.ones((4, 2))],
        'root_rank': lambda: 0, 'obj': lambda: 1, 'optimizer': mx.optimizer.SGD,
        'params': lambda: {'a': mx.nd.ones(2)}, 'file_path': lambda: '/',
        'process_set': lambda: hvd.global_process_set}
EXCUSED = {('add_process_set', 'process_set'),  # may also be ranks; the error has Horovod's text
           ('DistributedTrainer', 'params'), ('DistributedTrainer', 'optimizer')}  # checked by MXNet
# Blocking functions ignore the priority.
EXCUSED |= {(name, 'priority') for name in wrong_arguments.functions_of(hvd)
            if not name.startswith(('allreduce', 'grouped_allreduce', 'broadcast'))}


class Arguments(Case):

    def test_each_wrong_argument_is_named_in_the_error(self):
        wrong_arguments.check(self, hvd, GOOD, EXCUSED)
