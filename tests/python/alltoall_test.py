# SPDX-License-Identifier: Apache-2.0
"""alltoall with equal and given splits, and its gradient."""

import torch

import horovod.torch as hvd
from case import Case
from inputs import ALL, values


def splits_of(rank):
    """Rank r sends (r + i) % 3 rows to rank i."""
    return [(rank + peer) % 3 for peer in range(hvd.size())]


class Alltoall(Case):

    def test_every_dtype_is_sent_in_equal_parts(self):
        for dtype in ALL:
            with self.subTest(dtype=dtype):
                tensors = [values(rank, (2 * hvd.size(), 3), dtype)
                           for rank in range(hvd.size())]
                result = hvd.alltoall(tensors[hvd.rank()])
                own = slice(2 * hvd.rank(), 2 * hvd.rank() + 2)
                self.assertEqual(result.tolist(), torch.cat([t[own] for t in tensors]).tolist())
                self.assertEqual(result.dtype, dtype)

    def test_given_splits_send_uneven_parts_and_tell_what_came(self):
        tensors = [values(rank, (sum(splits_of(rank)), 2)) for rank in range(hvd.size())]
        parts = [tensor.split(splits_of(rank))[hvd.rank()]
                 for rank, tensor in enumerate(tensors)]
        counts = [len(part) for part in parts]
        mine = splits_of(hvd.rank())
        for splits in (mine, torch.tensor(mine, dtype=torch.int32)):
            result, received = hvd.alltoall(tensors[hvd.rank()], splits)
            self.assertTrue(torch.equal(result, torch.cat(parts)))
            self.assertEqual(received.dtype, torch.int32)
            self.assertEqual(received.tolist(), counts)

    def test_synchronize_gives_tensor_and_received_splits(self):
        result, received = hvd.synchronize(hvd.alltoall_async(torch.zeros(hvd.size(), 2)))
        self.assertEqual(result.shape, (hvd.size(), 2))
        self.assertEqual(received.tolist(), [1] * hvd.size())

    def test_wrong_splits_are_refused(self):
        size = hvd.size()
        wrong = [([1] * (size + 1), 'Number of entries in splits'),
                 ([[1] * size], '1D splits tensor'),
                 (torch.ones(size, dtype=torch.int64), '32-bit integer'),
                 ([9] * size, 'Sum of splits entries is greater')]
        for splits, message in wrong:
            with self.subTest(splits=splits), self.assertRaisesRegex(ValueError, message):
                hvd.alltoall(torch.ones(size, 2), splits)
        if size > 1:
            with self.assertRaisesRegex(ValueError, 'not an even multiple'):
                hvd.alltoall(torch.ones(size + 1, 2))

    def test_gradient_goes_back_where_the_rows_came_from(self):
        mine = splits_of(hvd.rank())
        tensor = values(hvd.rank(), (sum(mine), 2)).requires_grad_()
        result, _ = hvd.alltoall(tensor, mine)
        result.backward(torch.full_like(result, hvd.rank() + 1.0))
        right = torch.repeat_interleave(torch.arange(1.0, hvd.size() + 1), torch.tensor(mine))
        self.assertTrue(torch.equal(tensor.grad, right[:, None].expand(-1, 2)))

    def test_differentiable_result_can_be_changed_in_place(self):
        mine = values(hvd.rank(), (hvd.size(), 2)).requires_grad_()
        result = hvd.alltoall(mine)
        result += 1
        result.sum().backward()
        self.assertTrue(torch.equal(mine.grad, torch.ones_like(mine)))
