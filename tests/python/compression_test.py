# SPDX-License-Identifier: Apache-2.0
"""Compression: libhvd itself casts float32 tensors; for other tensors the compressor is called."""

from unittest import mock

import torch

import horovod.torch as hvd
from case import Case
from horovod.common.exceptions import HorovodInternalError
from horovod.torch.compression import BF16Compressor, FP16Compressor
from inputs import stacked, values

BUILT_IN = (FP16Compressor, BF16Compressor)

# Numbers that a cast to the 16-bit type would round.
FINE = {FP16Compressor: 1 + 2.0 ** -14, BF16Compressor: 1 + 2.0 ** -10}


def fractions(rank, shape=(1031,), dtype=torch.float32):
    """Returns numbers that a 16-bit float cannot represent exactly."""
    generator = torch.Generator().manual_seed(rank + 1)
    return torch.randn(shape, generator=generator).to(dtype)


def by_hand(tensor, compression, **options):
    """Reduces the tensor as 16-bit floats, without compression in libhvd."""
    small, ctx = compression.compress(tensor)
    return compression.decompress(hvd.allreduce(small, **options), ctx)


class Doubling:
    """A compressor that records its calls; the values are doubled during the reduction."""

    def __init__(self):
        self.calls = []

    def compress(self, tensor):
        self.calls.append('compress')
        return tensor * 2, 'context'

    def decompress(self, tensor, ctx):
        self.calls.append('decompress')
        assert ctx == 'context'
        return tensor / 2


def derived(base):
    """Returns a class derived from the compressor ``base`` that records calls of its methods."""
    class Derived(base):
        calls = []

        @classmethod
        def compress(cls, tensor):
            cls.calls.append('compress')
            return super().compress(tensor)

        @classmethod
        def decompress(cls, tensor, ctx):
            cls.calls.append('decompress')
            return super().decompress(tensor, ctx)

    return Derived


def optimizer_of(gradients, **options):
    """Returns parameters that have these gradients on this rank, and their optimizer."""
    parameters = [torch.nn.Parameter(torch.zeros_like(each)) for each in gradients]
    optimizer = hvd.DistributedOptimizer(
        torch.optim.SGD(parameters, 1.0),
        [(f'parameter {index}', each) for index, each in enumerate(parameters)], **options)
    loss = sum((each * gradient).sum().double() for each, gradient in zip(parameters, gradients))
    loss.backward()
    return parameters, optimizer


class Compressed(Case):
    """The base of the tests, with an exact comparison that prints little for large tensors."""

    def check_same(self, result, expected):
        self.check_kind(result, expected)
        self.assertTrue(torch.equal(result, expected), f'{result} is not {expected}')


class Allreduce(Compressed):

    def test_results_are_those_of_a_cast(self):
        for compression in BUILT_IN:
            for op in (hvd.Sum, hvd.Average):
                for shape in ((), (0,), (3, 4), (1031,), (300000,)):
                    with self.subTest(compression=compression, op=op, shape=shape):
                        mine = fractions(hvd.rank(), shape)
                        before = mine.clone()
                        result = hvd.allreduce(mine, op=op, compression=compression)
                        self.check_same(result, by_hand(mine, compression, op=op))
                        self.check_same(mine, before)

    def test_results_of_a_group_are_those_of_casts(self):
        dtypes = (torch.float32, torch.float64, torch.int32, torch.float16, torch.float32)
        mine = [values(hvd.rank(), (5,), dtype, salt) for salt, dtype in enumerate(dtypes)]
        mine[0] = fractions(hvd.rank())
        for compression in BUILT_IN:
            results = hvd.grouped_allreduce(mine, op=hvd.Sum, compression=compression)
            for result, own in zip(results, mine):
                self.check_same(result, by_hand(own, compression, op=hvd.Sum))

    def test_strided_tensors_are_compressed(self):
        mine = fractions(hvd.rank(), (6, 4)).t()
        for compression in BUILT_IN:
            self.check_same(hvd.allreduce(mine, op=hvd.Sum, compression=compression),
                            by_hand(mine.contiguous(), compression, op=hvd.Sum))

    def test_every_op_takes_compression(self):
        mine = values(hvd.rank(), (7,))
        everything = stacked(hvd.size(), (7,))
        for compression in BUILT_IN:
            for op, right in ((hvd.Min, everything.amin(0)), (hvd.Max, everything.amax(0)),
                              (hvd.Product, everything.prod(0))):
                self.check(hvd.allreduce(mine, op=op, compression=compression), right)
        if hvd.size() in (1, 2, 4):
            same = torch.ones(7)
            self.check(hvd.allreduce(same, op=hvd.Adasum, compression=FP16Compressor), same)

    def test_factors_are_applied(self):
        mine = values(hvd.rank(), (7,))
        for compression in BUILT_IN:
            self.check(hvd.allreduce(mine, op=hvd.Sum, prescale_factor=0.5, postscale_factor=4.0,
                                     compression=compression), 2 * stacked(hvd.size(), (7,)).sum(0))

    def test_prescale_comes_before_rounding(self):
        large = torch.full((5,), 2.0 ** 17)  # too large for float16
        for options in ({'op': hvd.Average}, {'op': hvd.Sum, 'postscale_factor': 1 / hvd.size()}):
            self.check(hvd.allreduce(large, prescale_factor=0.25, compression=FP16Compressor,
                                     **options), large / 4)

    def test_too_large_for_float16_is_infinite(self):
        large = torch.tensor([1e5, -1e5, 1.0])
        right = torch.tensor([float('inf'), -float('inf'), 1.0])
        self.check_same(hvd.allreduce(large, compression=FP16Compressor), right)
        self.check(hvd.allreduce(large, compression=BF16Compressor),
                   large.bfloat16().float())

    def test_gradient_travels_as_the_tensor_does(self):
        for compression in BUILT_IN:
            mine = torch.ones(3, requires_grad=True)
            given = torch.full((3,), FINE[compression])
            hvd.allreduce(mine, op=hvd.Sum, compression=compression).backward(given)
            self.check_same(mine.grad, by_hand(given, compression, op=hvd.Sum))
            group = [torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)]
            first, second = hvd.grouped_allreduce(group, op=hvd.Sum, compression=compression)
            torch.autograd.backward([first, second], [given, -given])
            self.check_same(group[0].grad, by_hand(given, compression, op=hvd.Sum))
            self.check_same(group[1].grad, -by_hand(given, compression, op=hvd.Sum))

    def test_ranks_with_different_compression_get_an_error(self):
        if hvd.size() == 1:
            self.skipTest('there is no other rank')
        compression = FP16Compressor if hvd.rank() == 0 else hvd.Compression.none
        with self.assertRaises(HorovodInternalError):
            hvd.allreduce(torch.ones(3), name='otherwise', compression=compression)
        self.check(hvd.allreduce(torch.ones(3), name='otherwise'), torch.ones(3))


class Optimizer(Compressed):

    def test_gradients_are_compressed_in_place(self):
        for compression in BUILT_IN:
            for groups in (0, 1):
                parameters, optimizer = optimizer_of(
                    [fractions(hvd.rank()), fractions(hvd.rank(), (4, 3))],
                    compression=compression, groups=groups)
                before = [each.grad for each in parameters]
                places = [each.data_ptr() for each in before]
                optimizer.synchronize()
                for parameter, gradient, place in zip(parameters, before, places):
                    self.assertIs(parameter.grad, gradient)
                    self.assertEqual(gradient.data_ptr(), place)
                    if hvd.size() > 1:
                        right = by_hand(fractions(hvd.rank(), parameter.shape), compression)
                        self.check_same(gradient, right)

    def test_floats_need_no_cast_in_torch(self):
        if hvd.size() == 1:
            self.skipTest('a lone rank exchanges nothing')
        for groups in (0, 1):
            with mock.patch.object(FP16Compressor, 'compress') as compress:
                parameters, optimizer = optimizer_of(
                    [torch.ones(3)], compression=hvd.Compression.fp16, groups=groups)
                optimizer.synchronize()
            compress.assert_not_called()
            self.check_same(parameters[0].grad, torch.ones(3))

    def test_dtypes_may_be_mixed(self):
        dtypes = (torch.float32, torch.float64, torch.bfloat16, torch.float16)
        for compression in BUILT_IN:
            for groups in (0, 1, 2):
                parameters, optimizer = optimizer_of(
                    [values(hvd.rank(), (5,), dtype, salt) for salt, dtype in enumerate(dtypes)],
                    compression=compression, groups=groups, op=hvd.Sum)
                optimizer.synchronize()
                for salt, (parameter, dtype) in enumerate(zip(parameters, dtypes)):
                    right = stacked(hvd.size(), (5,), torch.float32, salt).sum(0).to(dtype)
                    self.check_same(parameter.grad, right)

    def test_a_name_may_change_its_compression(self):
        if hvd.size() == 1:
            self.skipTest('a lone rank exchanges nothing')
        for compression in (hvd.Compression.none, *BUILT_IN, hvd.Compression.none):
            for fine in FINE.values():
                given = torch.full((3,), fine)
                parameters, optimizer = optimizer_of([given], compression=compression)
                for _ in range(2):  # first the reduction that backward() has started, then another
                    optimizer.synchronize()
                    self.check_same(parameters[0].grad, by_hand(given, compression))
                    parameters[0].grad.copy_(given)

    def test_sparse_gradients_are_compressed_as_dense_ones(self):
        for compression in BUILT_IN:
            table = torch.nn.Embedding(4, 2, sparse=True)
            optimizer = hvd.DistributedOptimizer(
                torch.optim.SGD(table.parameters(), 1.0), table.named_parameters(),
                compression=compression, sparse_as_dense=True, op=hvd.Sum)
            table(torch.tensor([3, 3])).sum().backward()
            optimizer.synchronize()
            right = torch.zeros(4, 2)
            right[3] = 2 * hvd.size()
            self.check(table.weight.grad.to_dense(), right)


class OfTheUser(Compressed):
    """Compressors that scripts define themselves."""

    def check_calls(self, compression, calls):
        """Checks that every function with compression calls both methods of the compressor and
        returns the right sum."""
        both = ['compress', 'decompress']
        mine, right = values(hvd.rank(), (6,)), stacked(hvd.size(), (6,)).sum(0)
        self.check(hvd.allreduce(mine, op=hvd.Sum, compression=compression), right)
        self.assertEqual(calls, both)
        calls.clear()
        for result in hvd.grouped_allreduce([mine, mine], op=hvd.Sum, compression=compression):
            self.check(result, right)
        self.assertEqual(sorted(calls), sorted(2 * both))
        calls.clear()
        if hvd.size() > 1:
            for groups in (0, 1):
                parameters, optimizer = optimizer_of([mine, mine], compression=compression,
                                                     groups=groups, op=hvd.Sum)
                optimizer.synchronize()
                self.check(parameters[1].grad, right)
                self.assertEqual(sorted(calls), sorted(2 * both))
                calls.clear()

    def test_own_compressors_are_called(self):
        compression = Doubling()
        self.check_calls(compression, compression.calls)

    def test_derived_compressors_are_called(self):
        for base in (*BUILT_IN, hvd.Compression.none):
            compression = derived(base)
            self.check_calls(compression, compression.calls)

    def test_objects_of_derived_compressors_are_called(self):
        for base in BUILT_IN:
            compression = derived(base)()
            self.check_calls(compression, compression.calls)

    def test_objects_of_compressors_work(self):
        mine = fractions(hvd.rank())
        for base in BUILT_IN:
            self.check_same(hvd.allreduce(mine, op=hvd.Sum, compression=base()),
                            by_hand(mine, base, op=hvd.Sum))
