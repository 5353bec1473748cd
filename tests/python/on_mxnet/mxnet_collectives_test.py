# SPDX-License-Identifier: Apache-2.0
"""The collectives on arrays of every kind."""

import mxnet as mx
import numpy as np

import horovod.mxnet as hvd
from mxnet_case import DTYPES, FLOATS, Case, array, mine, stacked, values
from ranks import own_part

SHAPES = [(1,), (5,), (3, 4), (2, 3, 4), (1031,)]


def reduced(op, shape, dtype='float32', salt=0):
    """What op should give, computed here."""
    everything = stacked(shape, dtype, salt)
    if op == hvd.Average:
        total = everything.astype('float64').sum(0)
        if dtype in FLOATS:
            return (total / hvd.size()).astype(dtype)
        return np.trunc(total * (1.0 / hvd.size())).astype(dtype)
    function = {hvd.Sum: np.sum, hvd.Product: np.prod, hvd.Min: np.min, hvd.Max: np.max}[op]
    return function(everything, 0).astype(dtype)


class Allreduce(Case):

    def test_every_dtype_and_op_gives_the_reference(self):
        for dtype in DTYPES:
            for op in (hvd.Average, hvd.Sum, hvd.Min, hvd.Max, hvd.Product):
                for shape in SHAPES:
                    with self.subTest(dtype=dtype, op=op, shape=shape):
                        own = mine(shape, dtype)
                        self.check(hvd.allreduce(own, op=op), reduced(op, shape, dtype))
                        self.check(own, values(hvd.rank(), shape, dtype))

    def test_average_is_the_default_and_the_old_argument_still_works(self):
        own = mine((4,))
        self.check(hvd.allreduce(own), reduced(hvd.Average, (4,)))
        with self.assertWarns(DeprecationWarning):
            self.check(hvd.allreduce(own, average=False), reduced(hvd.Sum, (4,)))
        with self.assertRaises(ValueError):
            hvd.allreduce(own, average=True, op=hvd.Sum)

    def test_in_place_changes_and_returns_the_array(self):
        own = mine((3, 4))
        self.assertIs(hvd.allreduce_(own, op=hvd.Sum), own)
        self.check(own, reduced(hvd.Sum, (3, 4)))

    def test_a_slice_is_reduced_in_its_place(self):
        own = mine((4, 3))
        hvd.allreduce_(own[1:3], op=hvd.Sum)
        expected = values(hvd.rank(), (4, 3))
        expected[1:3] = reduced(hvd.Sum, (4, 3))[1:3]
        self.check(own, expected)

    def test_scale_factors_apply_before_and_after(self):
        for dtype in FLOATS:
            result = hvd.allreduce(mine((7,), dtype), op=hvd.Sum, prescale_factor=0.5,
                                   postscale_factor=4.0)
            self.check(result, 2 * reduced(hvd.Sum, (7,), dtype))

    def test_group_is_reduced_as_one(self):
        shapes = [(5,), (2, 3), (1,)]
        own = [mine(shape, salt=salt) for salt, shape in enumerate(shapes)]
        expected = [reduced(hvd.Sum, shape, salt=salt) for salt, shape in enumerate(shapes)]
        for each in zip(hvd.grouped_allreduce(own, op=hvd.Sum), expected):
            self.check(*each)
        for result, before, right in zip(hvd.grouped_allreduce_(own, op=hvd.Sum), own, expected):
            self.assertIs(result, before)
            self.check(result, right)

    def test_group_of_slices_of_one_array_is_reduced_in_place(self):
        own = mine((4, 3))
        hvd.grouped_allreduce_([own[0:2], own[2:4]], op=hvd.Sum, name='slices')
        self.check(own, reduced(hvd.Sum, (4, 3)))

    def test_empty_group_is_refused(self):
        with self.assertRaises(ValueError):
            hvd.grouped_allreduce([])

    def test_numpy_like_arrays_stay_what_they_are(self):
        own = mx.np.array(values(hvd.rank(), (3,)))
        result = hvd.allreduce(own, op=hvd.Sum)
        self.assertIsInstance(result, mx.np.ndarray)
        self.check(result, reduced(hvd.Sum, (3,)))
        with mx.util.np_shape(True):
            self.assertEqual(hvd.allreduce(mx.np.array(2.0), op=hvd.Sum).item(), 2 * hvd.size())
            self.assertEqual(hvd.allreduce(mx.nd.zeros((0, 3))).shape, (0, 3))

    def test_sparse_and_foreign_arrays_are_refused(self):
        sparse = mx.nd.sparse.zeros('row_sparse', (2, 2))
        for wrong in (sparse, np.ones(2), 3.0):
            with self.assertRaisesRegex(ValueError, 'is not supported'):
                hvd.allreduce(wrong)

    def test_adasum_of_equal_arrays_is_the_array(self):
        if hvd.size() & (hvd.size() - 1):
            self.skipTest('Adasum is for a power of two of ranks')
        own = array(values(0, (5,)))
        self.check(hvd.allreduce(own, op=hvd.Adasum), values(0, (5,)))


class Others(Case):

    def test_broadcast_gives_the_roots_array(self):
        for dtype in DTYPES:
            for root in range(hvd.size()):
                own = mine((3, 4), dtype)
                self.check(hvd.broadcast(own, root), values(root, (3, 4), dtype))
                self.check(own, values(hvd.rank(), (3, 4), dtype))
                self.assertIs(hvd.broadcast_(own, root_rank=root), own)
                self.check(own, values(root, (3, 4), dtype))

    def test_allgather_joins_rows_of_different_numbers(self):
        for dtype in DTYPES:
            parts = [values(rank, (rank + 1, 3), dtype) for rank in range(hvd.size())]
            self.check(hvd.allgather(mine((hvd.rank() + 1, 3), dtype)), np.concatenate(parts))

    def test_grouped_allgather_joins_each(self):
        own = [mine((hvd.rank() + 1, 2), salt=salt) for salt in range(3)]
        for salt, result in enumerate(hvd.grouped_allgather(own)):
            self.check(result, np.concatenate([values(rank, (rank + 1, 2), salt=salt)
                                               for rank in range(hvd.size())]))

    def test_alltoall_sends_equal_parts(self):
        for dtype in DTYPES:
            everything = stacked((2 * hvd.size(), 3), dtype)
            begin = 2 * hvd.rank()
            self.check(hvd.alltoall(mine((2 * hvd.size(), 3), dtype)),
                       np.concatenate(everything[:, begin:begin + 2]))

    def test_alltoall_sends_what_the_splits_say(self):
        # Rank r sends i rows to rank i, and so gets r rows from each; rank 0 gets nothing.
        count = sum(range(hvd.size())) or 1
        splits = list(range(hvd.size()))
        begin = sum(splits[:hvd.rank()])
        expected = np.concatenate(
            [values(rank, (count, 2))[begin:begin + hvd.rank()] for rank in range(hvd.size())])
        for given in (splits, mx.nd.array(splits, dtype='int32')):
            output, received = hvd.alltoall(mine((count, 2)), splits=given)
            self.check(output, expected)
            self.check(received, np.full(hvd.size(), hvd.rank(), 'int32'))

    def test_bad_splits_are_refused(self):
        count = hvd.size()
        for wrong, text in (
                (mx.nd.ones((2, 2)), 'alltoall expects a 1D splits tensor'),
                ([1] * (count + 1), 'Number of entries in splits does not equal number of'),
                ([3] + [0] * (count - 1), 'Sum of splits entries is greater than the first'),
                (mx.nd.ones((count,)), 'splits to contain 32-bit integer elements. .* float32'),
                (mx.nd.ones((count,), dtype='int64'), 'to contain 32-bit integer elements. .* int64'),
                ([0.5] * count, 'expected whole numbers')):
            with self.subTest(splits=wrong):
                with self.assertRaisesRegex(mx.MXNetError, text) as raised:
                    hvd.alltoall(mx.nd.ones((2,)), splits=wrong)
                self.assertIsInstance(raised.exception, ValueError)

    def test_errors_are_mxnets_and_those_of_the_other_front_ends(self):
        array = mx.nd.ones((2 * hvd.size(),))
        for op in (hvd.Adasum, hvd.Max):
            with self.assertRaisesRegex(mx.MXNetError, 'only supports AVERAGE and SUM') as raised:
                hvd.reducescatter(array, op=op)
            self.assertIsInstance(raised.exception, hvd.mpi_ops.HorovodInternalError)
        with self.assertRaisesRegex(mx.MXNetError, 'Tensors in list must be on same device'):
            hvd.grouped_allreduce([array, mx.nd.ones((2,), ctx=mx.cpu(1))])
        with self.assertRaisesRegex(mx.MXNetError, 'rank-zero tensor') as raised:
            hvd.allgather(mx.np.array(1.0))
        self.assertIsInstance(raised.exception, hvd.mpi_ops.HorovodInternalError)

    def test_wrong_ops_are_named(self):
        array = mx.nd.ones((2 * hvd.size(),))
        for call in (hvd.allreduce, hvd.allreduce_, hvd.reducescatter,
                     lambda array, op: hvd.grouped_allreduce([array], op=op),
                     lambda array, op: hvd.grouped_allreduce_([array], op=op),
                     lambda array, op: hvd.grouped_reducescatter([array], op=op)):
            for wrong, kind in (('sum', TypeError), (True, TypeError), (9, ValueError)):
                with self.subTest(op=wrong):
                    with self.assertRaisesRegex(kind, '^op is .*: expected one of hvd.Average'):
                        call(array, op=wrong)
        with self.assertRaisesRegex(TypeError, "root_rank is '0'.*expected the number of a rank"):
            hvd.broadcast(array, '0')
        with self.assertRaisesRegex(TypeError, "prescale_factor is 'a'.*expected a number"):
            hvd.allreduce(array, prescale_factor='a')

    def test_reducescatter_leaves_each_rank_its_rows(self):
        for dtype in DTYPES:
            for op in (hvd.Average, hvd.Sum):
                shape = (2 * hvd.size() + 1, 3)
                self.check(hvd.reducescatter(mine(shape, dtype), op=op),
                           own_part(reduced(op, shape, dtype)))

    def test_grouped_reducescatter_leaves_each_rank_its_rows(self):
        shape = (hvd.size() + 1, 2)
        results = hvd.grouped_reducescatter([mine(shape, salt=salt) for salt in range(3)],
                                            op=hvd.Sum, prescale_factor=2.0)
        for salt, result in enumerate(results):
            self.check(result, own_part(2 * reduced(hvd.Sum, shape, salt=salt)))

    def test_scalars_cannot_be_scattered(self):
        with mx.util.np_shape(True):
            with self.assertRaisesRegex(ValueError, 'scalar'):
                hvd.reducescatter(mx.np.array(1.0))


class Sets(Case):

    def tearDown(self):
        hvd.broadcast_object('a rank that has nothing to do leaves after the others')

    def test_sets_reduce_among_themselves(self):
        if hvd.size() == 1:
            self.skipTest('needs two ranks')
        ranks = list(range(1, hvd.size()))
        members = hvd.ProcessSet(ranks)
        hvd.shutdown()
        hvd.init(process_sets=[members])
        self.assertEqual(members.included(), hvd.rank() in ranks)
        if not members.included():
            with self.assertRaisesRegex(ValueError, 'is not a member'):
                hvd.allreduce(mine((3,)), process_set=members)
            return
        parts = [values(rank, (3,)) for rank in ranks]
        self.check(hvd.allreduce(mine((3,)), op=hvd.Sum, process_set=members), sum(parts))
        self.check(hvd.broadcast(mine((3,)), ranks[-1], process_set=members), parts[-1])
        self.check(hvd.allgather(mine((3,)), process_set=members), np.concatenate(parts))
        self.check(hvd.reducescatter(mine((3,)), op=hvd.Sum, process_set=members),
                   own_part(sum(parts), members))

    def test_sets_are_added_and_removed_later(self):
        hvd.shutdown()
        hvd.init(process_sets='dynamic')
        if hvd.size() > 1:
            added = hvd.add_process_set([0])
            if hvd.rank() == 0:
                self.check(hvd.allreduce(mine((3,)), process_set=added), values(0, (3,)))
            self.assertTrue(hvd.remove_process_set(added))
        self.assertFalse(hvd.remove_process_set(hvd.global_process_set))
