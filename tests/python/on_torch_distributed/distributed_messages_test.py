# SPDX-License-Identifier: Apache-2.0
"""send and recv, and sums of sparse tensors, with the backend hvd."""

import unittest

import torch
import torch.distributed as dist

from distributed_case import IS_ALONE, Case

LARGE = 1 << 18  # elements: a message that is too large to be buffered by the sender
# The tag of messages to a rank that receives from any rank. It differs from the tags of other
# tests, because a rank that has sent its message goes on to the next test.
FROM_ANY = 4


class Messages(Case):

    def setUp(self):
        super().setUp()
        self.next, self.before = (self.rank + 1) % self.size, (self.rank - 1) % self.size

    def around(self, shape):
        """Checks that each rank can send to the next one."""
        got = torch.empty(shape)
        operations = [dist.P2POp(dist.isend, self.mine(shape), self.next),
                      dist.P2POp(dist.irecv, got, self.before)]
        if self.size == 1:
            self.skipTest('torch refuses messages to oneself')
        for work in dist.batch_isend_irecv(operations):
            work.wait()
        self.check_same(got, self.whole(shape)[self.before])

    def test_small_messages_in_a_batch(self):
        self.around((3,))

    def test_large_messages_in_a_batch(self):
        self.around((LARGE,))

    def test_tags_select_messages(self):
        if self.rank > 1 or self.size == 1:
            self.skipTest('ranks 0 and 1 alone')
        tags = [3, 1, 2]
        if self.rank == 0:
            for tag in tags:
                dist.isend(torch.full((2,), float(tag)), 1, tag=tag).wait()
        else:
            for tag in sorted(tags):
                got = torch.zeros(2)
                dist.recv(got, 0, tag=tag)
                self.assertEqual(got.tolist(), [tag] * 2)

    @unittest.skipUnless(IS_ALONE, 'torch asks no backend in Python beside others for the source')
    def test_a_message_is_received_from_any_rank(self):
        if self.size == 1:
            self.skipTest('no other rank')
        if self.rank > 0:
            dist.send(torch.full((2,), float(self.rank)), 0, tag=FROM_ANY)
        else:
            sources = []
            for _ in range(1, self.size):
                got = torch.zeros(2)
                sources.append(dist.recv(got, tag=FROM_ANY))
                self.assertEqual(got.tolist(), [sources[-1]] * 2)
            self.assertEqual(sorted(sources), list(range(1, self.size)))

    def test_a_message_is_received_into_memory_that_is_not_dense(self):
        if self.rank > 1 or self.size == 1:
            self.skipTest('ranks 0 and 1 alone')
        if self.rank == 0:
            dist.send(torch.arange(6.).reshape(2, 3).t(), 1)
        else:
            got = torch.zeros(2, 3)
            dist.recv(got.t(), 0)
            self.assertEqual(got.tolist(), [[0, 1, 2], [3, 4, 5]])


class Sparse(Case):

    def sparse(self, rank):
        """Returns a rank's sparse tensor, with a value in the row 0, as on all ranks, and one in a
        row that no other rank uses."""
        indices = torch.tensor([[0, rank + 1], [1, 0]])
        return torch.sparse_coo_tensor(indices, torch.tensor([1., 2. + rank]), (self.size + 1, 2))

    def test_sparse_tensors_are_added_up(self):
        tensor = self.sparse(self.rank)
        dist.all_reduce(tensor)
        expected = sum(self.sparse(rank).to_dense() for rank in range(self.size))
        self.check_same(tensor.to_dense(), expected)

    def test_other_reductions_of_sparse_tensors_are_rejected(self):
        with self.assertRaisesRegex(NotImplementedError, 'SUM and AVG, not by max'):
            dist.all_reduce(self.sparse(self.rank), dist.ReduceOp.MAX)
