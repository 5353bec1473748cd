# SPDX-License-Identifier: Apache-2.0
"""If the calls of a group's ranks differ, all get an error at once. As with Gloo, the ranks may use
different shapes and memory layouts for the same number of elements."""

import threading
from datetime import timedelta

import torch
import torch.distributed as dist

from distributed_case import PATIENCE, Case, begin_again, gather_into_one, meeting_place, scatter_from_one


class OwnChoices(Case):
    """Rank 0 uses one shape or layout, and the other ranks use another one for the same numbers."""

    def turned(self, rows, columns):
        """Returns a matrix: dense on rank 0, and in the memory layout of its transpose on other
        ranks."""
        tensor = self.mine((rows, columns))
        return tensor if self.rank == 0 else tensor.t().contiguous().t()

    def reshaped(self, count):
        """Returns a row on rank 0, and a matrix on other ranks."""
        tensor = self.mine((2 * count,))
        return tensor if self.rank == 0 else tensor.view(2, count)

    def check_flat(self, tensor, expected):
        self.check(tensor.reshape(-1), expected.reshape(-1))

    def test_all_reduce_takes_another_layout_on_each_rank(self):
        tensor = self.turned(3, 4)
        dist.all_reduce(tensor)
        self.check(tensor, self.whole((3, 4)).sum(0))

    def test_reductions_take_another_shape_on_each_rank(self):
        tensor = self.reshaped(3)
        dist.all_reduce(tensor)
        self.check_flat(tensor, self.whole((6,)).sum(0))
        tensor = self.reshaped(3)
        dist.reduce(tensor, 0)
        if self.rank == 0:
            self.check_flat(tensor, self.whole((6,)).sum(0))

    def test_tensors_of_a_coalesced_call_may_differ_in_shape(self):
        tensors = [self.turned(3, 4), self.reshaped(5)]
        dist.group.WORLD.allreduce_coalesced(tensors).wait()
        self.check(tensors[0], self.whole((3, 4)).sum(0))
        self.check_flat(tensors[1], self.whole((10,)).sum(0))

    def test_broadcast_takes_another_shape_and_layout_on_each_rank(self):
        tensor = self.reshaped(3)
        dist.broadcast(tensor, self.size - 1)
        self.check_flat(tensor, self.whole((6,))[-1])
        tensor = self.turned(3, 4)
        dist.broadcast(tensor, self.size - 1)
        self.check(tensor, self.whole((3, 4))[-1])

    def test_gathers_and_scatters_take_another_shape_on_each_rank(self):
        whole, parts = self.whole((6,)), torch.zeros(self.size, 2, 3)
        if self.rank > 0:
            parts = parts.view(self.size, 6)
        gather_into_one(parts, self.reshaped(3))
        self.check_flat(parts, whole)
        mine = torch.zeros(6) if self.rank == 0 else torch.zeros(2, 3)
        scatter_from_one(mine, whole if self.rank == 0 else whole.view(self.size, 2, 3))
        self.check_flat(mine, whole[self.rank] * self.size)

    def test_split_sizes_may_be_given_by_some_ranks(self):
        """Rank 0 passes a vector; the others pass a matrix with rows of two numbers."""
        given = (torch.arange(4 * self.size) + 100 * self.rank)
        expected = torch.cat([100 * each + torch.arange(4) + 4 * self.rank
                              for each in range(self.size)])
        sizes = [2] * self.size
        for choices in ((), (sizes, sizes), (None, sizes), (sizes, None)):
            with self.subTest(choices=choices):
                output = torch.zeros_like(given)
                if self.rank == 0:
                    dist.all_to_all_single(output, given)
                else:
                    dist.all_to_all_single(output.view(-1, 2), given.view(-1, 2), *choices)
                self.check_same(output, expected)

    def test_all_to_all_takes_lists_on_some_ranks_and_one_tensor_on_others(self):
        given = torch.arange(2 * self.size) + 100 * self.rank
        output = torch.zeros_like(given)
        if self.rank == 0:
            dist.all_to_all(list(output.split(2)), list(given.split(2)))
        else:
            dist.all_to_all_single(output, given)
        self.check_same(output, torch.cat([100 * each + torch.arange(2) + 2 * self.rank
                                           for each in range(self.size)]))

    def test_two_ranks_must_agree_on_the_size_that_they_exchange(self):
        if self.size == 1:
            self.skipTest('no other rank to disagree with')
        count = self.size if self.rank == 0 else 2 * self.size
        with self.assertRaisesRegex((ValueError, RuntimeError), 'all_to_all.*(expected|give more room)'):
            dist.all_to_all_single(torch.zeros(count), torch.zeros(count))
        self.check_job_goes_on()


def all_reduce(count, op=dist.ReduceOp.SUM, dtype=torch.float32):
    return lambda group: dist.all_reduce(torch.ones(count, dtype=dtype), op, group, async_op=True)


def broadcast(count, root):
    return lambda group: dist.broadcast(torch.ones(count), root, group, async_op=True)


def gather(count):
    return lambda group: dist.all_gather(
        [torch.zeros(count) for _ in range(dist.get_world_size(group))], torch.ones(count), group,
        async_op=True)


def barrier(group):
    return dist.barrier(group, async_op=True)


# (name, call of rank 0, call of the other ranks, and the texts of both in the error)
DISAGREEMENTS = [
    ('sizes', all_reduce(6), all_reduce(7), 'all_reduce sum float32 6', 'all_reduce sum float32 7'),
    ('reductions', all_reduce(6), all_reduce(6, dist.ReduceOp.MAX), 'all_reduce sum float32 6',
     'all_reduce max float32 6'),
    ('types', all_reduce(6), all_reduce(6, dtype=torch.int64), 'all_reduce sum float32 6',
     'all_reduce sum int64 6'),
    ('roots', broadcast(6, 0), broadcast(6, 1), 'broadcast float32 6 from 0',
     'broadcast float32 6 from 1'),
    ('collectives', all_reduce(6), broadcast(6, 0), 'all_reduce sum float32 6',
     'broadcast float32 6 from 0'),
    ('gathers', gather(4), all_reduce(4), 'all_gather float32', 'all_reduce sum float32 4'),
    ('barriers', barrier, all_reduce(6), 'barrier', 'all_reduce sum float32 6')]


class Disagreements(Case):
    """Two ranks of a group disagree, and the other ranks of the job continue."""

    def setUp(self):
        super().setUp()
        if self.size == 1:
            self.skipTest('no other rank to disagree with')

    def group(self):
        return dist.new_group([0, 1], timeout=timedelta(seconds=PATIENCE))

    def check_told(self, function, *texts):
        with self.assertRaisesRegex(RuntimeError, '.*'.join(('the ranks disagree on call', *texts))):
            function()

    def check_disagreement(self, first, second, *texts, before=0):
        """Checks the error if the call of rank 0 differs from that of rank 1, after 3 * ``before``
        equal calls. Returns the group, which cannot be used any more."""
        group = self.group()
        if self.rank < 2:
            for _ in range(before):
                for call in (all_reduce(6), all_reduce(9), all_reduce(12)):
                    call(group).wait()
            mine = first if self.rank == 0 else second
            self.check_told(lambda: mine(group).wait(), f'{3 * before + 1} of', 'rank 0 on .* called',
                            f"{texts[0]}.*',", 'rank 1 on .* called', f"{texts[1]}.*'\\.")
        return group

    def test_the_error_has_both_calls(self):
        for name, first, second, *texts in DISAGREEMENTS:
            with self.subTest(of=name):
                self.check_disagreement(first, second, *texts)
        self.check_job_goes_on()

    def test_a_disagreement_during_replay_is_reported(self):
        """After repeated calls, which libhvd replays without messages, one rank makes a call out of
        turn, or a call that is not part of the replay."""
        for count in (9, 10):
            with self.subTest(count=count):
                self.check_disagreement(all_reduce(6), all_reduce(count), 'all_reduce sum float32 6',
                                        f'all_reduce sum float32 {count}', before=100)
        self.check_disagreement(all_reduce(6), broadcast(6, 0), 'all_reduce sum float32 6',
                                'broadcast float32 6 from 0', before=100)
        self.check_job_goes_on()

    def test_later_calls_of_the_group_fail_too(self):
        group = self.check_disagreement(all_reduce(6), barrier, 'all_reduce sum float32 6', 'barrier')
        for call in (all_reduce(6), barrier):
            if self.rank < 2:
                self.check_told(lambda: call(group).wait())
        self.check_job_goes_on()

    def test_a_future_fails_after_a_disagreement(self):
        group = self.group()
        if self.rank < 2:
            future = all_reduce(6 + self.rank)(group).get_future()
            self.check_told(future.wait)
        self.check_job_goes_on()

    def test_a_call_of_one_rank_alone_is_named(self):
        """Rank 0 makes a call that rank 1 never makes, then calls that both make, and then waits
        for the first one."""
        group = self.group()
        if self.rank == 0:
            alone = all_reduce(77)(group)
        if self.rank < 2:
            for _ in range(50):
                all_reduce(6)(group).wait()
        if self.rank == 0:
            self.check_told(alone.wait, '1 of', 'rank 0 on', 'all_reduce sum float32 77',
                            'but not rank 1 on .* which is in call 51', 'barrier')
        elif self.rank == 1:
            self.check_told(barrier(group).wait, '1 of', 'all_reduce sum float32 77')
        self.check_job_goes_on()

    def test_calls_under_way_end_first(self):
        group = self.group()
        if self.rank < 2:
            tensors = [torch.ones(each + 1) for each in range(20)]
            works = [dist.all_reduce(each, group=group, async_op=True) for each in tensors]
            last = all_reduce(100 + self.rank)(group)
            for each in works:
                each.wait()
            self.check_told(last.wait, '21 of')
            self.assertTrue(all(each.tolist() == [2] * len(each) for each in tensors))
        self.check_job_goes_on()

    def test_a_late_rank_is_no_disagreement(self):
        group, store = self.group(), self.store(self.id())
        if self.rank == 0:
            work = all_reduce(6)(group)
            self.assertFalse(work.is_completed())
            with self.assertRaises(RuntimeError):
                work.wait(timedelta(seconds=1.5))
            store.set('waited', 'yes')
            work.wait()
        elif self.rank == 1:
            store.wait(['waited'])
            all_reduce(6)(group).wait()
        self.check_job_goes_on()

    def test_threads_with_groups_of_their_own_do_not_disagree(self):
        groups = [self.group() for _ in range(3)]
        sums = [torch.ones(2) for _ in groups]

        def run(index):
            for _ in range(100):
                dist.all_reduce(sums[index], dist.ReduceOp.MAX, groups[index])
                all_reduce(3 + index)(groups[index]).wait()

        if self.rank < 2:
            threads = [threading.Thread(target=run, args=(each,)) for each in range(3)]
            for each in threads:
                each.start()
            for each in threads:
                each.join()
        self.check_job_goes_on()

    def test_the_default_group_is_lost_until_it_begins_again(self):
        place = meeting_place()
        other = dist.new_group()
        dist.all_reduce(torch.ones(3))
        mine = all_reduce(6) if self.rank == 0 else all_reduce(7)
        self.check_told(lambda: mine(None).wait(), 'rank 0 on', 'all_reduce sum float32 6',
                        'rank [^0] on', 'all_reduce sum float32 7')
        self.check_told(lambda: all_reduce(3)(None).wait())
        dist.all_reduce(torch.ones(3), group=other)
        begin_again(place)
        self.check_job_goes_on()
