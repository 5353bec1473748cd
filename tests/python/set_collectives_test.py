# SPDX-License-Identifier: Apache-2.0
"""Collectives on process sets: rejected calls, gradients, and overlapping sets that run at the same
time. reference/torch_test.py compares the results."""

import random
import threading

import torch

import horovod.torch as hvd
from inputs import values
from process_sets_test import JobCase, begin_again


def groups_of_ranks(size):
    """Returns the ranks of overlapping sets: single ranks, all ranks but one, every second rank,
    the lower half."""
    groups = [[0], [size - 1], range(size - 1), range(1, size), range(0, size, 2),
              range(1, size, 2), range(size // 2)]
    distinct = {tuple(group) for group in groups} - {(), tuple(range(size))}
    return sorted(distinct)


class SetCollectives(JobCase):

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.sets = [hvd.ProcessSet(ranks) for ranks in groups_of_ranks(hvd.size())]
        begin_again(process_sets=cls.sets)
        cls.mine = [each for each in cls.sets if each.included()]

    def setUp(self):
        self.need(2)

    def test_ranks_and_sizes_are_those_of_the_sets(self):
        for each in self.sets:
            self.assertEqual(each.size(), len(each.ranks))
            self.assertEqual(each.included(), hvd.rank() in each.ranks)
        for members in self.mine:
            self.assertEqual(members.ranks[members.rank()], hvd.rank())

    def test_root_of_a_broadcast_is_a_member(self):
        for members in self.mine:
            for stranger in set(range(hvd.size() + 1)) - set(members.ranks):
                with self.assertRaisesRegex(ValueError, 'broadcast received invalid root rank'):
                    hvd.broadcast(torch.ones(1), stranger, process_set=members)

    def test_alltoall_has_a_split_for_each_member(self):
        for members in self.mine:
            with self.assertRaisesRegex(ValueError, 'Number of entries in splits'):
                hvd.alltoall(torch.ones(9), [1] * (members.size() + 1), process_set=members)

    def test_objects_stay_in_the_set(self):
        for members in self.mine:
            self.assertEqual(hvd.allgather_object(hvd.rank(), process_set=members),
                             members.ranks)
            root = members.ranks[-1]
            self.assertEqual(hvd.broadcast_object(hvd.rank(), root, process_set=members), root)

    def test_barrier_waits_for_members_only(self):
        """First the ranks pass the barriers of the sets without rank 0, which does not take part.
        Then, in each set of rank 0, the other members wait in a barrier while all members run
        collectives; rank 0 enters the barrier last."""
        for members in self.mine:
            if 0 not in members.ranks:
                hvd.barrier(process_set=members)
        hvd.barrier()
        waiting = []
        for members in self.mine:
            if 0 not in members.ranks:
                continue
            waiter = threading.Thread(target=hvd.barrier, args=(members,))
            if hvd.rank() > 0:
                waiter.start()
            for _ in range(20):
                hvd.allreduce(torch.ones(1), name='rounds', process_set=members)
            waiting.append(hvd.rank() == 0 or waiter.is_alive())
            hvd.allreduce(torch.ones(1), name='seen', process_set=members)
            if hvd.rank() == 0:
                waiter.start()
            waiter.join()
        self.assertTrue(all(waiting), 'a barrier did not wait for rank 0')

    def test_gradients_are_those_of_a_job_of_the_members(self):
        for members in self.mine:
            size, index = members.size(), members.rank()
            ones = torch.ones(2 * size, 2)
            weight = torch.full((2 * size, 2), index + 1.0)
            mean, total = (size + 1) / 2, size * (size + 1) / 2
            for right, call in (
                    (total, lambda x: hvd.allreduce(x, op=hvd.Sum, process_set=members)),
                    (mean, lambda x: hvd.allreduce(x, process_set=members)),
                    (total, lambda x: hvd.grouped_allreduce([x], op=hvd.Sum,
                                                            process_set=members)[0]),
                    (mean if index == 0 else 0,
                     lambda x: hvd.broadcast(x, members.ranks[0], process_set=members))):
                x = ones.clone().requires_grad_()
                call(x).backward(weight)
                self.check(x.grad, torch.full_like(x, right))
            x = ones.clone().requires_grad_()
            hvd.allgather(x, process_set=members).backward(weight.repeat(size, 1))
            self.check(x.grad, torch.full_like(x, mean))

    def test_gradients_of_parts_go_back_to_their_members(self):
        for members in self.mine:
            size = members.size()
            # Row i of each member goes to member i // 2, which multiplies it by its index + 1.
            right = (torch.arange(2 * size) // 2 + 1.0)[:, None].expand(-1, 2)
            for factor, call in (
                    (size, lambda x: hvd.reducescatter(x, op=hvd.Sum, process_set=members)),
                    (1, lambda x: hvd.reducescatter(x, process_set=members)),
                    (1, lambda x: hvd.alltoall(x, process_set=members))):
                x = torch.ones(2 * size, 2, requires_grad=True)
                result = call(x)
                result.backward(torch.full_like(result, members.rank() + 1.0))
                self.check(x.grad, factor * right)

    def test_overlapping_sets_run_at_the_same_time_in_any_order(self):
        everyone = [*self.mine, hvd.global_process_set]
        for round_ in range(5):
            work = [(members, salt) for members in everyone for salt in range(8)]
            random.Random(100 * round_ + hvd.rank()).shuffle(work)
            handles = {(members.process_set_id, salt): hvd.allreduce_async(
                values(hvd.rank(), (50,), salt=salt), op=hvd.Sum, name=f'at once {salt}',
                process_set=members) for members, salt in work}
            random.Random(hvd.rank()).shuffle(work)
            for members, salt in work:
                total = sum(values(rank, (50,), salt=salt) for rank in members.ranks)
                self.check(hvd.synchronize(handles[members.process_set_id, salt]), total)

    def test_unnamed_tensors_of_one_set_do_not_shift_those_of_another(self):
        for _ in range(1 + 3 * hvd.rank()):
            for members in self.mine:
                if members.size() == 1:
                    hvd.allreduce(torch.ones(1), process_set=members)
        for members in self.mine:
            result = hvd.allreduce(torch.ones(1), op=hvd.Sum, process_set=members)
            self.assertEqual(result.item(), members.size())
        self.assertEqual(hvd.allreduce(torch.ones(1), op=hvd.Sum).item(), hvd.size())

    def test_disagreement_in_a_set_fails_there_only(self):
        for members in self.mine:
            if members.size() == 1:
                continue
            with self.assertRaisesRegex(hvd.HorovodInternalError,
                                        'Mismatched ALLREDUCE tensor shapes'):
                hvd.allreduce(torch.ones(2 + (members.rank() > 0)), name='shapes',
                              process_set=members)
            total = hvd.allreduce(torch.ones(2), op=hvd.Sum, process_set=members)
            self.assertEqual(total.tolist(), [members.size()] * 2)

    def test_optimizers_of_two_sets_train_apart(self):
        """The lower and the upper half of the ranks train a model each, independently."""
        half = hvd.size() // 2
        halves = [hvd.ProcessSet(range(half)), hvd.ProcessSet(range(half, hvd.size()))]
        begin_again(process_sets=halves)
        which = int(hvd.rank() >= half)
        weights = [torch.nn.Parameter(torch.zeros(3)) for _ in halves]
        optimizers = [hvd.DistributedOptimizer(torch.optim.SGD([weight], 1.0),
                                               [('weight', weight)], process_set=members)
                      for weight, members in zip(weights, halves)]
        for _ in range(3):
            optimizers[which].zero_grad()
            (weights[which] * (hvd.rank() + 1)).sum().backward()
            optimizers[which].step()
        mean = sum(rank + 1 for rank in halves[which].ranks) / halves[which].size()
        self.check(weights[which].detach(), torch.full((3,), -3 * mean))
        with self.assertRaisesRegex(ValueError, 'has not been registered'):
            hvd.DistributedOptimizer(torch.optim.SGD(weights, 1.0),
                                     process_set=hvd.ProcessSet([0]))
        type(self).setUpClass()

    def test_batch_norm_takes_the_statistics_of_the_members(self):
        for members in self.mine:
            batches = [values(rank, (4, 3), torch.float64) for rank in members.ranks]
            layer = hvd.SyncBatchNorm(3, process_set=members).double()
            result = layer(batches[members.rank()])
            right = torch.nn.BatchNorm1d(3).double()(torch.cat(batches))
            self.assertTrue(torch.allclose(result, right[4 * members.rank():][:4]))
