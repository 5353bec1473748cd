# SPDX-License-Identifier: Apache-2.0
"""join: ranks with less data wait for the others, and take part with zeros meanwhile."""

import torch

import horovod.torch as hvd
from case import Case
from inputs import values
from process_sets_test import JobCase, begin_again


class Join(Case):

    def setUp(self):
        hvd.barrier()

    def check_job_goes_on(self):
        """Checks that all ranks take part in collectives again, also in those without a name."""
        self.assertEqual(hvd.allreduce(torch.ones(1), op=hvd.Sum).item(), hvd.size())
        self.assertEqual(hvd.allgather(torch.tensor([hvd.rank()])).tolist(),
                         list(range(hvd.size())))

    def alone(self):
        """Returns the result of an allreduce to which only this rank contributes; it runs when all
        other ranks have joined."""
        return hvd.allreduce(torch.ones(3), op=hvd.Sum, name='alone').tolist()

    def test_every_rank_learns_who_was_last(self):
        for last in range(hvd.size()):
            if hvd.rank() == last:
                self.assertEqual(self.alone(), [1.0] * 3)
            self.assertEqual(hvd.join(), last)
            self.check_job_goes_on()

    def test_joined_ranks_count_as_zeros(self):
        for op in (hvd.Sum, hvd.Average):
            for step in range(2 * hvd.rank() + 1):  # higher ranks have more steps
                active = [rank for rank in range(hvd.size()) if step <= 2 * rank]
                total = sum(values(rank, (4, 2), salt=step) for rank in active)
                result = hvd.allreduce(values(hvd.rank(), (4, 2), salt=step), op=op,
                                       name=f'step {step}')
                self.check(result, total / hvd.size() if op == hvd.Average else total)
            self.assertEqual(hvd.join(), hvd.size() - 1)
        self.check_job_goes_on()

    def test_all_kinds_of_allreduce_work_while_a_rank_has_joined(self):
        if hvd.rank() > 0:
            for dtype in (torch.uint8, torch.int64, torch.float16, torch.bfloat16, torch.float64):
                mine = torch.ones(5, dtype=dtype)
                self.assertIs(hvd.allreduce_(mine, op=hvd.Sum, name=f'in place {dtype}'), mine)
                self.assertEqual(mine.tolist(), [hvd.size() - 1] * 5)
                first, second = hvd.grouped_allreduce([mine, mine[:2]], op=hvd.Sum,
                                                      name=f'group {dtype}', prescale_factor=1.0)
                self.assertEqual(first.tolist(), [(hvd.size() - 1)**2] * 5)
                self.assertEqual(second.tolist(), [(hvd.size() - 1)**2] * 2)
        hvd.join(device=-1)
        self.check_job_goes_on()

    def test_steps_that_repeat_go_on_after_a_join(self):
        """Repeats the same names in each step, with a join in the middle of the repetitions."""
        for epoch in range(3):
            short = epoch % hvd.size()
            for step in range(20):
                if hvd.rank() == short and step == 10:
                    break
                active = hvd.size() - (step >= 10)
                for layer in range(5):
                    result = hvd.allreduce(torch.ones(10), op=hvd.Sum, name=f'layer {layer}')
                    self.assertEqual(result.tolist(), [active] * 10)
            hvd.join()
        self.check_job_goes_on()

    def test_collectives_submitted_before_a_join_complete_after_it(self):
        handles = [hvd.allreduce_async(torch.ones(100), op=hvd.Sum, name=f'before {index}')
                   for index in range(10 + 10 * hvd.rank())]
        hvd.join()
        for index, handle in enumerate(handles):
            count = sum(index < 10 + 10 * rank for rank in range(hvd.size()))
            self.assertEqual(hvd.synchronize(handle).tolist(), [count] * 100)
        self.check_job_goes_on()

    def test_optimizer_trains_on_uneven_numbers_of_batches(self):
        weight = torch.nn.Parameter(torch.zeros(3))
        optimizer = hvd.DistributedOptimizer(torch.optim.SGD([weight], 1.0),
                                             [('weight', weight)])
        for _ in range(hvd.rank() + 1):
            optimizer.zero_grad()
            weight.sum().backward()
            optimizer.step()
        hvd.join()
        # Step s had the gradients of size - s ranks. Only the last rank has taken all steps.
        hvd.broadcast_parameters([('weight', weight.data)], hvd.size() - 1)
        right = -sum(range(1, hvd.size() + 1)) / hvd.size()
        self.check(weight.detach(), torch.full((3,), right))

    def check_refused(self, message, call):
        """Checks that ``call`` fails on all ranks but rank 0, which has joined."""
        if hvd.size() == 1:
            self.skipTest('takes two ranks')
        if hvd.rank() > 0:
            with self.assertRaisesRegex(hvd.HorovodInternalError, message):
                call()
        hvd.join()
        self.check_job_goes_on()

    def test_allgather_is_refused(self):
        self.check_refused(
            'Allgather is not supported with Join at this time. Specify sparse_to_dense=True if '
            'using DistributedOptimizer', lambda: hvd.allgather(torch.ones(2), name='refused'))

    def test_broadcast_is_refused(self):
        self.check_refused('Broadcast is not supported with Join at this time.',
                           lambda: hvd.broadcast(torch.ones(2), 0, name='refused'))

    def test_alltoall_is_refused(self):
        self.check_refused('Alltoall is not supported with Join at this time.',
                           lambda: hvd.alltoall(torch.ones(hvd.size()), name='refused'))

    def test_reducescatter_is_refused(self):
        self.check_refused('Reducescatter is not supported with Join at this time.',
                           lambda: hvd.reducescatter(torch.ones(4), name='refused'))

    def test_reductions_that_zeros_would_change_are_rejected(self):
        for op in (hvd.Min, hvd.Max, hvd.Product):
            self.check_refused('with Join',
                               lambda op=op: hvd.allreduce(torch.ones(2), op=op, name='refused'))


class JoinBesideSets(JobCase):

    def test_other_process_sets_continue_without_joined_ranks(self):
        self.need(3)
        rest = hvd.ProcessSet(range(1, hvd.size()))
        begin_again(process_sets=[rest])
        if rest.included():
            hvd.allreduce(torch.ones(1), name='rank 0 has joined')
            for _ in range(3):
                result = hvd.allgather(torch.tensor([hvd.rank()]), process_set=rest)
                self.assertEqual(result.tolist(), rest.ranks)
                result = hvd.allreduce(torch.ones(1), op=hvd.Max, process_set=rest)
                self.assertEqual(result.item(), 1)
        hvd.join()
        self.assertEqual(hvd.allreduce(torch.ones(1), op=hvd.Sum).item(), hvd.size())
