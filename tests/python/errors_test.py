# SPDX-License-Identifier: Apache-2.0
"""Errors for wrong arguments have the same types as Horovod's, which scripts catch, and name the
argument."""

import torch

import horovod.torch as hvd
from case import Case
import horovod_itself

# Expressions for which hvd must raise the same type of error as Horovod, which evaluates them, too.
# t is a tensor of four rows, size the number of ranks.
SAME_TYPE = [
    'hvd.reducescatter(t, op=hvd.Adasum)', 'hvd.reducescatter(t, op=hvd.Min)',
    'hvd.grouped_reducescatter([t, t], op=hvd.Adasum)',
    'hvd.allreduce(t, average=True, op=hvd.Sum)',
    'hvd.allreduce(torch.ones(2, dtype=torch.complex64))',
    'hvd.allreduce(t, op="sum")', 'hvd.allreduce(t, op=1.0)', 'hvd.reducescatter(t, op=None)',
    'hvd.allreduce(t, prescale_factor="a")', 'hvd.broadcast(t, "0")', 'hvd.broadcast(t, None)',
    'hvd.broadcast(t, size)', 'hvd.broadcast(t, -1)',
    'hvd.alltoall(t, splits=[9] * size)', 'hvd.alltoall(t, splits=[1] * (size + 1))',
    'hvd.alltoall(t, splits=torch.ones(size, 1, dtype=torch.int32))',
    'hvd.alltoall(t, splits=torch.ones(size))', 'hvd.alltoall(t, splits="ab")',
    'hvd.poll(12345)', 'hvd.broadcast_parameters(3, 0)', 'hvd.add_process_set([0])',
    'hvd.broadcast_optimizer_state(torch.optim.LBFGS([t.clone().requires_grad_()]), 0)',
    'hvd.start_timeline("/nowhere/timeline")', 'hvd.mpi_threads_supported()',
    'hvd.DistributedOptimizer(sgd(), op=hvd.Sum, gradient_predivide_factor=2.0)',
    'hvd.DistributedOptimizer(sgd(), backward_passes_per_step=0)',
    'hvd.DistributedOptimizer(sgd(), groups=-1)',
    'hvd.DistributedOptimizer(sgd(), named_parameters=["a"])',
]
# Expressions whose errors must also contain Horovod's text, because scripts may match it.
SAME_TEXT = {'hvd.reducescatter(t, op=hvd.Adasum)', 'hvd.broadcast(t, size)', 'hvd.poll(12345)',
             'hvd.allreduce(t, average=True, op=hvd.Sum)', 'hvd.broadcast_parameters(3, 0)',
             'hvd.alltoall(t, splits=[9] * size)', 'hvd.alltoall(t, splits=torch.ones(size))',
             'hvd.broadcast_optimizer_state(torch.optim.LBFGS([t.clone().requires_grad_()]), 0)'}
MEANING = '''
t = torch.ones(4, 2)
size = hvd.size()

def sgd():
    return torch.optim.SGD([t.clone().requires_grad_()], 0.1)

def said(text):
    try:
        eval(text)
    except Exception as error:
        return [each.__name__ for each in type(error).__mro__], str(error)
    return [], "nothing"
'''


class Errors(Case):

    def test_errors_have_the_types_of_horovods_errors(self):
        theirs = horovod_itself.ask(
            f'{MEANING}\nanswer = {{text: said(text) for text in {SAME_TYPE}}}')
        names = {'hvd': hvd, 'torch': torch}
        exec(MEANING, names)
        for text, (kinds, sentence) in theirs.items():
            with self.subTest(call=text):
                own_kinds, own_sentence = names['said'](text)
                self.assertIn(kinds[0], own_kinds, own_sentence)
                if text in SAME_TEXT:
                    # Horovod runs with one rank here, so its text may have another number.
                    words = sentence.replace(' 1 ', f' {hvd.size()} ')
                    self.assertIn(words, own_sentence)

    def test_a_group_with_tensors_on_several_devices_is_rejected(self):
        t = torch.ones(4, 2)
        for call in (hvd.grouped_allreduce, hvd.grouped_allgather, hvd.grouped_reducescatter):
            with self.assertRaisesRegex(hvd.HorovodInternalError, 'must be on same device'):
                call([t, torch.ones(2, device='meta')])
