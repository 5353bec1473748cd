# SPDX-License-Identifier: Apache-2.0
"""Wrong arguments of horovod.torch are told in a sentence."""

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
EXCUSED = {('add_process_set', 'process_set')}  # takes ranks, and has Horovod's text


class Arguments(Case):

    def test_each_that_is_wrong_is_named(self):
        wrong_arguments.check(self, hvd, GOOD, EXCUSED)

    def test_names_of_a_call_that_was_refused_are_free(self):
        with self.assertRaises(TypeError):
            hvd.allreduce_async_(torch.ones(2), name='refused', op='sum')
        self.assertEqual(hvd.allreduce(torch.ones(2), name='refused', op=hvd.Max).tolist(), [1, 1])
