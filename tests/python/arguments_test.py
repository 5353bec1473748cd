# SPDX-License-Identifier: Apache-2.0
"""Wrong arguments of horovod.torch raise an error that names the argument."""

import torch

import horovod.torch as hvd
from case import Case
import wrong_arguments


def optimizer():
    return torch.optim.SGD([torch.ones(2, requires_grad=True)], 0.1)


GOOD = {'tensor': lambda: torch.ones(4, 2), 'tensors': lambda: [torch.ones(4, 2)],
        'root_rank': lambda: 0, 'obj': lambda: 1, 'optimizer': optimizer,
        'params': lambda: {'a': torch.ones(2)}, 'handle': lambda: 1, 'file_path': lambda: '/',
        'process_set': lambda: hvd.global_process_set}
# The argument may also be a list of ranks, and its error has Horovod's text.
EXCUSED = {('add_process_set', 'process_set')}


class Arguments(Case):

    def test_each_wrong_argument_is_named_in_the_error(self):
        wrong_arguments.check(self, hvd, GOOD, EXCUSED)

    def test_the_name_of_a_rejected_call_can_be_used_again(self):
        with self.assertRaises(TypeError):
            hvd.allreduce_async_(torch.ones(2), name='refused', op='sum')
        self.assertEqual(hvd.allreduce(torch.ones(2), name='refused', op=hvd.Max).tolist(), [1, 1])
