# SPDX-License-Identifier: Apache-2.0
"""allreduce in all its forms, and its gradients."""

import torch

import horovod.torch as hvd
from case import Case
from inputs import ALL, FLOATS, stacked, values

SHAPES = [(), (0,), (5,), (3, 4), (2, 3, 4), (1031,)]


def reduced(op, shape, dtype, salt=0):
    """What op should give, computed here."""
    everything = stacked(hvd.size(), shape, dtype, salt)
    wide = everything.to(torch.float64 if dtype.is_floating_point else torch.int64)
    if op == hvd.Average:
        total = wide.sum(0)
        if dtype.is_floating_point:
            return (total / hvd.size()).to(dtype)
        return (total.double() * (1.0 / hvd.size())).trunc().to(dtype)
    return {hvd.Sum: lambda: wide.sum(0), hvd.Product: lambda: wide.prod(0),
            hvd.Min: lambda: wide.amin(0), hvd.Max: lambda: wide.amax(0)}[op]().to(dtype)


class Allreduce(Case):

    def test_every_dtype_and_op_gives_the_reference(self):
        for dtype in ALL:
            if dtype is torch.bool:
                continue
            for op in (hvd.Average, hvd.Sum, hvd.Min, hvd.Max, hvd.Product):
                for shape in SHAPES:
                    with self.subTest(dtype=dtype, op=op, shape=shape):
                        mine = values(hvd.rank(), shape, dtype)
                        before = mine.clone()
                        self.check(hvd.allreduce(mine, op=op), reduced(op, shape, dtype))
                        self.assertEqual(mine.tolist(), before.tolist())

    def test_bool_sum_is_or_and_product_is_and(self):
        everything = stacked(hvd.size(), (16,), torch.bool)
        mine = everything[hvd.rank()]
        self.assertTrue(torch.equal(hvd.allreduce(mine, op=hvd.Sum), everything.any(0)))
        self.assertTrue(torch.equal(hvd.allreduce(mine, op=hvd.Product), everything.all(0)))

    def test_average_is_the_default_and_the_old_argument_still_works(self):
        mine = values(hvd.rank(), (4,))
        self.check(hvd.allreduce(mine), reduced(hvd.Average, (4,), mine.dtype))
        with self.assertWarns(DeprecationWarning):
            self.check(hvd.allreduce(mine, average=False), reduced(hvd.Sum, (4,), mine.dtype))
        with self.assertRaises(ValueError):
            hvd.allreduce(mine, average=True, op=hvd.Sum)

    def test_in_place_changes_and_returns_the_tensor(self):
        mine = values(hvd.rank(), (3, 4))
        self.assertIs(hvd.allreduce_(mine, op=hvd.Sum), mine)
        self.check(mine, reduced(hvd.Sum, (3, 4), mine.dtype))
        handle = hvd.allreduce_async_(mine, op=hvd.Max)
        self.assertIs(hvd.synchronize(handle), mine)

    def test_strided_tensors_are_reduced_in_place_too(self):
        mine = values(hvd.rank(), (4, 6))
        expected = reduced(hvd.Sum, (4, 6), mine.dtype)
        self.check(hvd.allreduce(mine.t(), op=hvd.Sum), expected.t())
        whole = torch.zeros(4, 12)
        whole[:, ::2] = mine
        hvd.allreduce_(whole[:, ::2], op=hvd.Sum)
        self.check(whole[:, ::2], expected)
        self.assertEqual(whole[:, 1::2].abs().sum(), 0)

    def test_scale_factors_apply_before_and_after(self):
        for dtype in (torch.float32, torch.float64, torch.float16):
            mine = values(hvd.rank(), (7,), dtype)
            result = hvd.allreduce(mine, op=hvd.Sum, prescale_factor=0.5, postscale_factor=4.0)
            self.check(result, 2 * reduced(hvd.Sum, (7,), dtype))
        mine = values(hvd.rank(), (7,), torch.int32)
        result = hvd.allreduce(mine, op=hvd.Sum, prescale_factor=0.5)
        self.check(result, (stacked(hvd.size(), (7,), torch.int32) // 2).sum(0).int())

    def test_group_is_reduced_as_one(self):
        shapes = [(5,), (2, 3), (0,), ()]
        mine = [values(hvd.rank(), shape, salt=salt) for salt, shape in enumerate(shapes)]
        expected = [reduced(hvd.Sum, shape, torch.float32, salt)
                    for salt, shape in enumerate(shapes)]
        for each in zip(hvd.grouped_allreduce(mine, op=hvd.Sum), expected):
            self.check(*each)
        for each in zip(hvd.synchronize(hvd.grouped_allreduce_async(mine, op=hvd.Sum)),
                        expected):
            self.check(*each)
        in_place = hvd.grouped_allreduce_(mine, op=hvd.Sum)
        for result, own, right in zip(in_place, mine, expected):
            self.assertIs(result, own)
            self.check(own, right)

    def test_empty_group_is_refused(self):
        with self.assertRaises(ValueError):
            hvd.grouped_allreduce([])

    def test_many_at_once_complete_in_any_order(self):
        handles = [hvd.allreduce_async(values(hvd.rank(), (9,), salt=salt), op=hvd.Sum,
                                       name=f'many.{salt}') for salt in range(50)]
        for salt, handle in reversed(list(enumerate(handles))):
            self.check(hvd.synchronize(handle), reduced(hvd.Sum, (9,), torch.float32, salt))

    def test_ranks_may_submit_in_different_orders(self):
        order = list(range(20))
        if hvd.rank() % 2 == 1:
            order.reverse()
        handles = {salt: hvd.allreduce_async(values(hvd.rank(), (9,), salt=salt), op=hvd.Sum,
                                             name=f'order.{salt}') for salt in order}
        for salt, handle in handles.items():
            self.check(hvd.synchronize(handle), reduced(hvd.Sum, (9,), torch.float32, salt))

    def test_compression_returns_the_original_dtype(self):
        for compression in (hvd.Compression.fp16, hvd.Compression.bf16):
            for dtype in (torch.float32, torch.float64, torch.int32):
                mine = values(hvd.rank(), (6,), dtype)
                result = hvd.allreduce(mine, op=hvd.Sum, compression=compression)
                self.check(result, reduced(hvd.Sum, (6,), dtype))

    def test_complex_and_sparse_tensors_are_refused(self):
        with self.assertRaisesRegex(ValueError, 'is not supported'):
            hvd.allreduce(torch.ones(2, dtype=torch.complex64))
        with self.assertRaisesRegex(ValueError, 'sparse_allreduce_async'):
            hvd.allreduce(torch.eye(2).to_sparse())

    def test_sparse_allreduce_gives_the_dense_result(self):
        mine = values(hvd.rank(), (4, 3)) * (torch.arange(4) % hvd.size() == hvd.rank())[:, None]
        dense = hvd.allreduce(mine, op=hvd.Sum)
        for op, right in ((hvd.Sum, dense), (hvd.Average, dense / hvd.size())):
            wait = hvd.sparse_allreduce_async(mine.to_sparse(), op=op)
            self.check(wait().to_dense(), right)
        with self.assertRaises(ValueError):
            hvd.sparse_allreduce_async(mine.to_sparse(), op=hvd.Max)
        with self.assertRaisesRegex(ValueError, 'no average of booleans'):
            hvd.sparse_allreduce_async((mine > 1).to_sparse())

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
