# SPDX-License-Identifier: Apache-2.0
"""allgather of equal and unequal parts, and its gradients."""

import torch

import horovod.torch as hvd
from case import Case
from inputs import ALL, FLOATS, values


class Allgather(Case):

    def test_every_dtype_is_concatenated_in_rank_order(self):
        for dtype in ALL:
            for shape in ((4,), (2, 3), (1, 2, 3)):
                with self.subTest(dtype=dtype, shape=shape):
                    parts = [values(rank, shape, dtype) for rank in range(hvd.size())]
                    self.check_same(hvd.allgather(parts[hvd.rank()]), torch.cat(parts))

    def test_first_dimension_may_differ_and_be_zero(self):
        for first in (0, 1, 3):
            parts = [values(rank, (first * rank, 3)) for rank in range(hvd.size())]
            self.check_same(hvd.allgather(parts[hvd.rank()]), torch.cat(parts))
        parts = [values(rank, (2, 0)) for rank in range(hvd.size())]
        self.check_same(hvd.allgather(parts[hvd.rank()]), torch.cat(parts))

    def test_group_is_gathered_as_one(self):
        parts = [[values(rank, (rank + salt, 2), salt=salt) for rank in range(hvd.size())]
                 for salt in range(3)]
        mine = [each[hvd.rank()] for each in parts]
        for results in (hvd.grouped_allgather(mine),
                        hvd.synchronize(hvd.grouped_allgather_async(mine))):
            for result, each in zip(results, parts):
                self.check_same(result, torch.cat(each))

    def test_result_outlives_its_handle_and_can_be_written(self):
        result = hvd.synchronize(hvd.allgather_async(values(hvd.rank(), (1000, 3))))
        view = result[-1]
        del result
        for _ in range(20):
            hvd.allgather(torch.zeros(1000, 3))
        view += 1
        self.check_same(view, values(hvd.size() - 1, (1000, 3))[-1] + 1)

    def test_strided_tensors_are_gathered(self):
        parts = [values(rank, (4, 3)).t() for rank in range(hvd.size())]
        self.check_same(hvd.allgather(parts[hvd.rank()]), torch.cat(parts))

    def test_scalars_are_refused_on_every_rank(self):
        with self.assertRaisesRegex(hvd.HorovodInternalError,
                                    'Process-set rank zero tried to ALLGATHER a rank-zero tensor'):
            hvd.allgather(torch.tensor(1.0))

    def test_gradient_is_the_averaged_part(self):
        for dtype in FLOATS:
            rows = [rank + 1 for rank in range(hvd.size())]
            mine = values(hvd.rank(), (rows[hvd.rank()], 2), dtype).requires_grad_()
            # Rank r weighs row i by i * (r + 1).
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
