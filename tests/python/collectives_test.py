# SPDX-License-Identifier: Apache-2.0
"""Collectives of horovod.torch: which tensor object they return, the order of calls, rejected
arguments, and gradients. reference/torch_test.py checks the results in every dtype, op, layout and
process set."""

import torch

import horovod.torch as hvd
from case import Case
from inputs import FLOATS, stacked, values
from ranks import own_part


def total_of(shape, dtype=torch.float32, salt=0):
    return stacked(hvd.size(), shape, dtype, salt).sum(0, dtype=dtype)


class Allreduce(Case):

    def test_average_is_the_default_and_the_old_argument_still_works(self):
        mine = values(hvd.rank(), (4,))
        self.check(hvd.allreduce(mine), total_of((4,)) / hvd.size())
        with self.assertWarns(DeprecationWarning):
            self.check(hvd.allreduce(mine, average=False), total_of((4,)))
        with self.assertRaises(ValueError):
            hvd.allreduce(mine, average=True, op=hvd.Sum)

    def test_in_place_changes_and_returns_the_tensor(self):
        mine = values(hvd.rank(), (3, 4))
        self.assertIs(hvd.allreduce_(mine, op=hvd.Sum), mine)
        self.check(mine, total_of((3, 4)))
        handle = hvd.allreduce_async_(mine, op=hvd.Max)
        self.assertIs(hvd.synchronize(handle), mine)

    def test_strided_tensors_are_reduced_in_place_too(self):
        mine = values(hvd.rank(), (4, 6))
        expected = total_of((4, 6))
        self.check(hvd.allreduce(mine.t(), op=hvd.Sum), expected.t())
        whole = torch.zeros(4, 12)
        whole[:, ::2] = mine
        hvd.allreduce_(whole[:, ::2], op=hvd.Sum)
        self.check(whole[:, ::2], expected)
        self.assertEqual(whole[:, 1::2].abs().sum(), 0)

    def test_a_group_in_place_changes_and_returns_its_tensors(self):
        shapes = [(5,), (2, 3), (0,), ()]
        mine = [values(hvd.rank(), shape, salt=salt) for salt, shape in enumerate(shapes)]
        for salt, (result, own) in enumerate(zip(hvd.grouped_allreduce_(mine, op=hvd.Sum), mine)):
            self.assertIs(result, own)
            self.check(own, total_of(shapes[salt], salt=salt))

    def test_empty_group_is_refused(self):
        with self.assertRaises(ValueError):
            hvd.grouped_allreduce([])

    def test_many_at_once_complete_in_any_order(self):
        handles = [hvd.allreduce_async(values(hvd.rank(), (9,), salt=salt), op=hvd.Sum,
                                       name=f'many.{salt}') for salt in range(50)]
        for salt, handle in reversed(list(enumerate(handles))):
            self.check(hvd.synchronize(handle), total_of((9,), salt=salt))

    def test_ranks_may_submit_in_different_orders(self):
        order = list(range(20))
        if hvd.rank() % 2 == 1:
            order.reverse()
        handles = {salt: hvd.allreduce_async(values(hvd.rank(), (9,), salt=salt), op=hvd.Sum,
                                             name=f'order.{salt}') for salt in order}
        for salt, handle in handles.items():
            self.check(hvd.synchronize(handle), total_of((9,), salt=salt))

    def test_complex_and_sparse_tensors_are_refused(self):
        with self.assertRaisesRegex(ValueError, 'is not supported'):
            hvd.allreduce(torch.ones(2, dtype=torch.complex64))
        with self.assertRaisesRegex(ValueError, 'sparse_allreduce_async'):
            hvd.allreduce(torch.eye(2).to_sparse())

    def test_sparse_tensors_have_sums_and_averages_of_numbers(self):
        mine = torch.eye(2)
        with self.assertRaises(ValueError):
            hvd.sparse_allreduce_async(mine.to_sparse(), op=hvd.Max)
        with self.assertRaisesRegex(ValueError, 'no average of booleans'):
            hvd.sparse_allreduce_async((mine > 0).to_sparse())

    def test_gradient_is_reduced_as_the_tensor(self):
        for dtype in FLOATS:
            for op, factor in ((hvd.Sum, hvd.size()), (hvd.Average, 1)):
                mine = values(hvd.rank(), (3, 4), dtype).requires_grad_()
                hvd.allreduce(mine, op=op, postscale_factor=2.0).backward(
                    torch.ones(3, 4, dtype=dtype))
                self.check(mine.grad, torch.full((3, 4), 2.0 * factor, dtype=dtype))

    def test_gradient_of_a_group_is_reduced_as_the_tensors(self):
        mine = [values(hvd.rank(), (5,), salt=salt).requires_grad_() for salt in range(3)]
        results = hvd.grouped_allreduce(mine, op=hvd.Sum)
        sum((salt + 1.0) * result.sum() for salt, result in enumerate(results)).backward()
        for salt, each in enumerate(mine):
            self.check(each.grad, torch.full((5,), (salt + 1.0) * hvd.size()))


class Allgather(Case):

    def test_result_outlives_its_handle_and_can_be_written(self):
        result = hvd.synchronize(hvd.allgather_async(values(hvd.rank(), (1000, 3))))
        view = result[-1]
        del result
        for _ in range(20):
            hvd.allgather(torch.zeros(1000, 3))
        view += 1
        self.check_same(view, values(hvd.size() - 1, (1000, 3))[-1] + 1)

    def test_scalars_are_refused_on_every_rank(self):
        with self.assertRaisesRegex(hvd.HorovodInternalError,
                                    'Process-set rank zero tried to ALLGATHER a rank-zero tensor'):
            hvd.allgather(torch.tensor(1.0))

    def test_gradient_is_the_averaged_part(self):
        for dtype in FLOATS:
            rows = [rank + 1 for rank in range(hvd.size())]
            mine = values(hvd.rank(), (rows[hvd.rank()], 2), dtype).requires_grad_()
            # Rank r multiplies row i by i * (r + 1).
            weights = torch.arange(sum(rows), dtype=dtype)[:, None] * (hvd.rank() + 1)
            hvd.allgather(mine).backward(weights.expand(-1, 2))
            begin = sum(rows[:hvd.rank()])
            mean = sum(rank + 1 for rank in range(hvd.size())) / hvd.size()
            own = torch.arange(begin, begin + rows[hvd.rank()], dtype=torch.float64)
            expected = (own * mean)[:, None].expand(-1, 2)
            self.assertTrue(torch.allclose(mine.grad.double(), expected, rtol=1e-2))

    def test_gradients_of_a_group_are_the_averaged_parts(self):
        mine = [values(hvd.rank(), (hvd.rank() + salt, 2), salt=salt).requires_grad_()
                for salt in range(2)]
        results = hvd.grouped_allgather(mine)
        sum((salt + 1) * result.sum() for salt, result in enumerate(results)).backward()
        for salt, each in enumerate(mine):
            self.check_same(each.grad, torch.full_like(each, salt + 1))

    def test_differentiable_result_can_be_changed_in_place(self):
        mine = values(hvd.rank(), (hvd.size(), 2)).requires_grad_()
        result = hvd.allgather(mine)
        result += 1
        result.sum().backward()
        self.assertTrue(torch.equal(mine.grad, torch.ones_like(mine)))


def splits_of(rank):
    """Returns the splits of a rank: rank r sends (r + i) % 3 rows to rank i."""
    return [(rank + peer) % 3 for peer in range(hvd.size())]


class Alltoall(Case):

    def test_splits_send_uneven_parts_and_return_the_received_splits(self):
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

    def test_gradients_return_to_the_ranks_that_sent_the_rows(self):
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


class Broadcast(Case):

    def test_in_place_changes_and_returns_the_tensor(self):
        root = hvd.size() - 1
        for layout in (torch.clone, torch.t):
            mine = layout(values(hvd.rank(), (3, 4)))
            self.assertIs(hvd.broadcast_(mine, root), mine)
            self.assertIs(hvd.synchronize(hvd.broadcast_async_(mine, root)), mine)
            self.check_same(mine, layout(values(root, (3, 4))))

    def test_root_that_does_not_exist_is_refused(self):
        for root in (-1, hvd.size()):
            with self.assertRaisesRegex(ValueError, 'root'):
                hvd.broadcast(torch.ones(2), root)

    def test_gradient_is_the_average_on_the_root_and_zero_elsewhere(self):
        root = hvd.size() - 1
        mine = values(hvd.rank(), (5,)).requires_grad_()
        hvd.broadcast(mine, root).backward(torch.full((5,), hvd.rank() + 1.0))
        mean = (hvd.size() + 1) / 2
        right = torch.full((5,), mean if hvd.rank() == root else 0.0)
        self.assertTrue(torch.allclose(mine.grad, right))


class Reducescatter(Case):

    def test_average_is_the_default(self):
        self.check(hvd.reducescatter(values(hvd.rank(), (5, 2))),
                   own_part(total_of((5, 2))) / hvd.size())

    def test_other_ops_and_scalars_are_refused(self):
        with self.assertRaisesRegex(hvd.HorovodInternalError, 'AVERAGE and SUM'):
            hvd.reducescatter(torch.ones(4), op=hvd.Max)
        with self.assertRaisesRegex(
                hvd.HorovodInternalError,
                'Process-set rank zero tried to REDUCESCATTER a rank-zero tensor'):
            hvd.reducescatter(torch.tensor(1.0))

    def test_gradient_is_gathered_and_counts_every_rank_for_sum(self):
        for op, factor in ((hvd.Sum, hvd.size()), (hvd.Average, 1)):
            mine = values(hvd.rank(), (2 * hvd.size() + 1, 2)).requires_grad_()
            result = hvd.reducescatter(mine, op=op, postscale_factor=2.0)
            result.backward(torch.full_like(result, hvd.rank() + 1.0))
            few = [2 + (rank < 1) for rank in range(hvd.size())]
            right = torch.repeat_interleave(torch.arange(1.0, hvd.size() + 1),
                                            torch.tensor(few))
            self.check(mine.grad, (2 * factor * right)[:, None].expand(-1, 2))

    def test_gradients_of_a_group_are_gathered(self):
        mine = [values(hvd.rank(), (3, 2), salt=salt).requires_grad_() for salt in range(2)]
        results = hvd.grouped_reducescatter(mine, op=hvd.Sum)
        sum((salt + 1) * result.sum() for salt, result in enumerate(results)).backward()
        for salt, each in enumerate(mine):
            self.check(each.grad, torch.full((3, 2), (salt + 1.0) * hvd.size()))
