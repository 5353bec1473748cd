# SPDX-License-Identifier: Apache-2.0
"""Which arguments of a call the ranks of a group may choose alone, over hvd as over Gloo."""

import unittest

import torch
import torch.distributed as dist

from distributed_case import Case, gather_into_one, scatter_from_one


class OwnChoices(Case):
    """Rank 0 gives a tensor of one shape or layout, the other ranks the same numbers in another."""

    def turned(self, rows, columns):
        """Rank 0: a dense matrix. Others: one of the same numbers whose memory is that of its
        transpose."""
        tensor = self.mine((rows, columns))
        return tensor if self.rank == 0 else tensor.t().contiguous().t()

    def reshaped(self, count):
        """Rank 0: a row. Others: a matrix."""
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

    def test_several_tensors_of_one_call_do_too(self):
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

    def test_gathers_and_scatters_do_too(self):
        whole, parts = self.whole((6,)), torch.zeros(self.size, 2, 3)
        if self.rank > 0:
            parts = parts.view(self.size, 6)
        gather_into_one(parts, self.reshaped(3))
        self.check_flat(parts, whole)
        mine = torch.zeros(6) if self.rank == 0 else torch.zeros(2, 3)
        scatter_from_one(mine, whole if self.rank == 0 else whole.view(self.size, 2, 3))
        self.check_flat(mine, whole[self.rank] * self.size)

    def test_split_sizes_may_be_given_by_some_ranks(self):
        """Of numbers on rank 0, of rows of two elsewhere."""
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

    def test_what_two_ranks_exchange_must_be_of_one_size(self):
        if self.size == 1:
            self.skipTest('no other rank to disagree with')
        count = self.size if self.rank == 0 else 2 * self.size
        with self.assertRaisesRegex((ValueError, RuntimeError), 'all_to_all.*(expected|give more room)'):
            dist.all_to_all_single(torch.zeros(count), torch.zeros(count))
        self.check_job_goes_on()


if __name__ == '__main__':
    unittest.main()
