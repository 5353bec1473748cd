# SPDX-License-Identifier: Apache-2.0
"""reducescatter with even and uneven rows, and its gradients."""

import torch

import horovod.torch as hvd
from case import Case
from inputs import NUMBERS, stacked, values
from ranks import own_part


class Reducescatter(Case):

    def test_every_dtype_gives_this_rank_its_rows(self):
        for dtype in NUMBERS:
            for shape in ((hvd.size(), 2), (2 * hvd.size() + 1,), (1, 3), (0, 3)):
                with self.subTest(dtype=dtype, shape=shape):
                    total = stacked(hvd.size(), shape, dtype).sum(0, dtype=dtype)
                    result = hvd.reducescatter(values(hvd.rank(), shape, dtype), op=hvd.Sum)
                    self.check(result, own_part(total))

    def test_average_is_the_default(self):
        total = stacked(hvd.size(), (5, 2)).sum(0)
        self.check(hvd.reducescatter(values(hvd.rank(), (5, 2))), own_part(total) / hvd.size())

    def test_scale_factors_apply(self):
        total = stacked(hvd.size(), (5, 2)).sum(0)
        result = hvd.reducescatter(values(hvd.rank(), (5, 2)), op=hvd.Sum, prescale_factor=0.5,
                                   postscale_factor=8.0)
        self.check(result, 4 * own_part(total))

    def test_group_is_reduced_as_one(self):
        mine = [values(hvd.rank(), (salt + 1, 2), salt=salt) for salt in range(3)]
        for results in (hvd.grouped_reducescatter(mine, op=hvd.Sum), hvd.synchronize(
                hvd.grouped_reducescatter_async(mine, op=hvd.Sum))):
            for salt, result in enumerate(results):
                self.check(result, own_part(stacked(hvd.size(), (salt + 1, 2), salt=salt).sum(0)))

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
