# SPDX-License-Identifier: Apache-2.0
"""Groups of the backend hvd: groups of some ranks, several groups of the same ranks, and the
creation and destruction of groups."""

import inspect
import unittest
from datetime import timedelta

import torch
import torch.distributed as dist

from distributed_case import BACKEND, IS_ALONE, VERSION, Case, begin_again
from horovod.torch.distributed.group import _has_other_backends

HAS_ARGUMENT = inspect.signature(dist.new_group).parameters


class Groups(Case):

    def check_sum(self, group, ranks):
        """Checks that the ranks of the group, and no others, add up their numbers."""
        tensor = torch.tensor([1.0 + self.rank])
        dist.all_reduce(tensor, group=group)
        ours = sum(1.0 + rank for rank in ranks) if self.rank in ranks else 1.0 + self.rank
        self.assertEqual(tensor.item(), ours)

    def test_numbers_of_ranks(self):
        ranks = list(range(self.size))[self.size // 2:]
        group = dist.new_group(ranks)
        is_member = self.rank in ranks
        self.assertEqual(dist.get_rank(group), ranks.index(self.rank) if is_member else -1)
        self.assertEqual(dist.get_world_size(group), len(ranks) if is_member else -1)
        if is_member:
            self.assertEqual(dist.get_backend(group), BACKEND)
            for root in ranks:  # torch takes the root's rank in the job, not its index in the group
                tensor = torch.tensor([float(self.rank)])
                dist.broadcast(tensor, root, group=group)
                self.assertEqual(tensor.item(), root)
            objects = [None] * len(ranks)
            dist.all_gather_object(objects, self.rank, group=group)
            self.assertEqual(objects, ranks)

    @unittest.skipIf(IS_ALONE, 'hvd is the only backend')
    def test_each_device_has_its_backend(self):
        def backend(device):
            return dist.group.WORLD._get_backend(torch.device(device)).name()

        self.assertEqual([backend('cpu'), backend('cuda')], ['hvd', 'gloo'])

    def test_without_the_group_in_its_options_there_are_no_other_backends(self):
        """Some releases of torch, such as 2.7, do not pass the group in a backend's options."""
        self.assertFalse(_has_other_backends(None))

    def test_the_default_group_is_of_all(self):
        self.assertEqual(dist.get_backend(), BACKEND)
        self.assertEqual(dist.group.WORLD.size(), self.size)

    def test_overlapping_groups(self):
        pairs = [[rank, rank + 1] for rank in range(self.size - 1)]
        groups = [dist.new_group(pair) for pair in pairs]
        for group, pair in zip(groups, pairs):
            self.check_sum(group, pair)
        self.check_job_goes_on()
        for group, pair in zip(groups[::-1], pairs[::-1]):
            self.check_sum(group, pair)

    def test_groups_of_one_rank(self):
        groups = [dist.new_group([rank]) for rank in range(self.size)]
        for rank, group in enumerate(groups):
            self.check_sum(group, [rank])

    def test_groups_of_the_same_ranks_do_not_mix(self):
        """Each rank calls the groups in a different order."""
        groups = [dist.new_group() for _ in range(3)]
        order = groups[self.rank % 3:] + groups[:self.rank % 3]
        works = {}
        for group in order:
            tensor = torch.full((4,), 1.0 + groups.index(group))
            works[groups.index(group)] = tensor, dist.all_reduce(tensor, group=group, async_op=True)
        for index in range(3):
            tensor, work = works[index]
            work.wait()
            self.assertEqual(tensor.tolist(), [self.size * (1.0 + index)] * 4)

    def test_groups_of_the_same_subset_of_ranks_do_not_mix(self):
        ranks = list(range(max(self.size - 1, 1)))
        first, second = dist.new_group(ranks), dist.new_group(ranks)
        if self.rank in ranks:
            groups = (first, second) if self.rank % 2 else (second, first)
            tensors = {group: torch.full((4,), 1.0 + (group is second)) for group in groups}
            works = [dist.all_reduce(tensors[group], group=group, async_op=True)
                     for group in groups]
            for work in works:
                work.wait()
            self.assertEqual(tensors[first].tolist(), [len(ranks)] * 4)
            self.assertEqual(tensors[second].tolist(), [2.0 * len(ranks)] * 4)

    def test_other_groups_work_after_one_is_destroyed(self):
        for _ in range(3):
            kept, given_up = dist.new_group(), dist.new_group()
            self.check_sum(given_up, range(self.size))
            dist.destroy_process_group(given_up)
            self.check_sum(kept, range(self.size))
            self.check_job_goes_on()
            dist.destroy_process_group(kept)

    def test_a_group_is_destroyed_by_its_members_alone(self):
        ranks = list(range(max(self.size - 1, 1)))
        group = dist.new_group(ranks)
        if self.rank in ranks:
            self.check_sum(group, ranks)
            dist.destroy_process_group(group)
        self.check_job_goes_on()
        self.check_sum(dist.new_group(ranks), ranks)

    def test_members_alone_make_a_group(self):
        if 'use_local_synchronization' not in HAS_ARGUMENT:
            self.skipTest('in this torch all ranks call new_group')
        self.addCleanup(begin_again)  # torch's names of groups now differ between ranks
        ranks = list(range(max(self.size - 1, 1)))
        if self.rank in ranks:
            group = dist.new_group(ranks, use_local_synchronization=True)
            self.check_sum(group, ranks)
        self.check_job_goes_on()

    def test_an_unsorted_group_is_refused(self):
        if 'sort_ranks' not in HAS_ARGUMENT:
            self.skipTest('this torch sorts the ranks of all groups')
        if self.size == 1:
            self.skipTest('one rank is always sorted')
        with self.assertRaisesRegex(NotImplementedError, r'ascending order, found \[.*1, 0\]'):
            dist.new_group(list(range(self.size))[::-1], sort_ranks=False)
        self.check_job_goes_on()

    def test_a_monitored_barrier_needs_a_newer_torch(self):
        if VERSION >= (2, 14):
            self.skipTest('this torch has monitored_barrier')
        with self.assertRaisesRegex(NotImplementedError, 'with PyTorch 2.14 or later'):
            dist.distributed_c10d._get_default_group().monitored_barrier(timedelta(seconds=200))

    def test_a_group_has_a_timeout_of_its_own(self):
        group = dist.new_group(timeout=timedelta(seconds=300))
        self.check_sum(group, range(self.size))


class Timeouts(Case):

    def setUp(self):
        super().setUp()
        if self.size == 1:
            self.skipTest('no other rank to be late')
        self.group = dist.new_group()
        self.late = self.store(self.id())
        self.options = dist.AllreduceOptions()
        self.options.timeout = timedelta(seconds=0.1)

    def all_reduce(self):
        return self.group.allreduce([torch.ones(5)], self.options)

    def test_a_call_that_takes_too_long_ends_the_group_for_all(self):
        if self.rank == 0:
            with self.assertRaisesRegex(RuntimeError, 'Timed out after 0.1 s'):
                self.all_reduce().wait()
            self.late.set('raised', 'yes')
        self.late.wait(['raised'])
        why = r'aborted by rank 0 on .*all_reduce sum float32 5#0 timed out after 0.1 s'
        for _ in range(2):
            with self.assertRaisesRegex(RuntimeError, why):
                dist.all_reduce(torch.ones(5), group=self.group)
        self.check_job_goes_on()

    def test_a_wait_that_takes_too_long_does_not_end_the_group(self):
        if self.rank == 0:
            work = self.all_reduce()
            with self.assertRaisesRegex(RuntimeError, 'Timed out after 0.2 s'):
                work.wait(timedelta(seconds=0.2))
            self.late.set('raised', 'yes')
            self.assertTrue(work.wait(timedelta(seconds=200)))
        else:
            self.late.wait(['raised'])
            dist.all_reduce(torch.ones(5), group=self.group)
        self.check_job_goes_on()


class Ends(Case):

    def test_all_groups_end_and_begin_again(self):
        for _ in range(3):
            group = dist.new_group()
            dist.all_reduce(torch.ones(3), group=group)
            begin_again()
            self.assertEqual((dist.get_rank(), dist.get_world_size()), (self.rank, self.size))
            self.check_job_goes_on()
            ones = torch.ones(3)
            dist.all_reduce(ones, group=dist.new_group())
            self.assertEqual(ones.tolist(), [self.size] * 3)

    def test_a_group_cannot_be_used_after_its_end(self):
        if VERSION < (2, 1):
            self.skipTest('this torch does not tell a group of its end')
        group = dist.new_group()
        dist.destroy_process_group(group)
        # torch 2.7 raises TypeError when it formats the error for its log.
        with self.assertRaises((ValueError, RuntimeError, TypeError)):
            dist.all_reduce(torch.ones(3), group=group)
        self.check_job_goes_on()


class MonitoredBarrier(Case):

    def setUp(self):
        super().setUp()
        if VERSION < (2, 14):
            self.skipTest('this torch has monitored_barrier for gloo alone')

    def test_all_ranks_pass_when_all_have_called_it(self):
        store = self.store('monitored')
        for turn in range(3):
            store.add(f'come {turn}', 1)
            dist.monitored_barrier(timeout=timedelta(seconds=200))
            self.assertEqual(store.add(f'come {turn}', 0), self.size)

    def check_names(self, pattern, **options):
        """Checks that the error of rank 0 matches the pattern if no other rank calls
        monitored_barrier."""
        if self.size == 1:
            self.skipTest('no other rank to miss')
        store = self.store(pattern)
        if self.rank == 0:
            with self.assertRaisesRegex(RuntimeError, pattern):
                dist.monitored_barrier(timeout=timedelta(seconds=0.2), **options)
            store.set('raised', 'yes')
        store.wait(['raised'])
        self.check_job_goes_on()

    def test_rank_0_names_the_first_rank_that_is_missing(self):
        self.check_names('^Rank 1 failed to pass monitoredBarrier in 200 ms')

    def test_rank_0_names_all_ranks_that_are_missing(self):
        others = ', '.join(map(str, range(1, self.size)))
        self.check_names(f'^Ranks {others} failed to pass', wait_all_ranks=True)
