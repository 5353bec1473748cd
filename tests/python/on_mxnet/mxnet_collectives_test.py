# SPDX-License-Identifier: Apache-2.0
"""Collectives on different kinds of arrays, and rejected arguments. reference/mxnet_test.py
compares the results in every dtype and op."""

import mxnet as mx
import numpy as np

import horovod.mxnet as hvd
from mxnet_case import Case, mine, stacked, values
from ranks import own_part


def total_of(shape, salt=0):
    return stacked(shape, salt=salt).sum(0)


class Allreduce(Case):

    def test_average_is_the_default_and_the_old_argument_still_works(self):
        own = mine((4,))
        self.check(hvd.allreduce(own), (total_of((4,)) / hvd.size()).astype('float32'))
        with self.assertWarns(DeprecationWarning):
            self.check(hvd.allreduce(own, average=False), total_of((4,)))
        with self.assertRaises(ValueError):
            hvd.allreduce(own, average=True, op=hvd.Sum)

    def test_in_place_changes_and_returns_the_array(self):
        own = mine((3, 4))
        self.assertIs(hvd.allreduce_(own, op=hvd.Sum), own)
        self.check(own, total_of((3, 4)))
        self.assertIs(hvd.broadcast_(own, root_rank=0), own)

    def test_a_slice_is_reduced_in_its_place(self):
        own = mine((4, 3))
        hvd.allreduce_(own[1:3], op=hvd.Sum)
        expected = values(hvd.rank(), (4, 3))
        expected[1:3] = total_of((4, 3))[1:3]
        self.check(own, expected)

    def test_a_group_in_place_changes_and_returns_its_arrays(self):
        own = [mine(shape, salt=salt) for salt, shape in enumerate([(5,), (2, 3), (1,)])]
        for salt, (result, before) in enumerate(zip(hvd.grouped_allreduce_(own, op=hvd.Sum), own)):
            self.assertIs(result, before)
            self.check(result, total_of(result.shape, salt))

    def test_group_of_slices_of_one_array_is_reduced_in_place(self):
        own = mine((4, 3))
        hvd.grouped_allreduce_([own[0:2], own[2:4]], op=hvd.Sum, name='slices')
        self.check(own, total_of((4, 3)))

    def test_empty_group_is_refused(self):
        with self.assertRaises(ValueError):
            hvd.grouped_allreduce([])

    def test_numpy_like_arrays_stay_what_they_are(self):
        own = mx.np.array(values(hvd.rank(), (3,)))
        result = hvd.allreduce(own, op=hvd.Sum)
        self.assertIsInstance(result, mx.np.ndarray)
        self.check(result, total_of((3,)))
        with mx.util.np_shape(True):
            self.assertEqual(hvd.allreduce(mx.np.array(2.0), op=hvd.Sum).item(), 2 * hvd.size())
            self.assertEqual(hvd.allreduce(mx.nd.zeros((0, 3))).shape, (0, 3))

    def test_sparse_and_foreign_arrays_are_refused(self):
        sparse = mx.nd.sparse.zeros('row_sparse', (2, 2))
        for wrong in (sparse, np.ones(2), 3.0):
            with self.assertRaisesRegex(ValueError, 'is not supported'):
                hvd.allreduce(wrong)


class Others(Case):

    def test_rows_are_gathered_and_scattered(self):
        parts = [values(rank, (rank + 1, 3)) for rank in range(hvd.size())]
        self.check(hvd.allgather(mine((hvd.rank() + 1, 3))), np.concatenate(parts))
        self.check(hvd.reducescatter(mine((5, 3)), op=hvd.Sum), own_part(total_of((5, 3))))

    def test_alltoall_sends_what_the_splits_say(self):
        # Each rank sends i rows to rank i, so rank r gets r rows from each, and rank 0 gets none.
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

    def test_scalars_cannot_be_scattered(self):
        with mx.util.np_shape(True):
            with self.assertRaisesRegex(ValueError, 'scalar'):
                hvd.reducescatter(mx.np.array(1.0))


class Sets(Case):

    def tearDown(self):
        hvd.broadcast_object('a rank that has nothing to do leaves after the others')

    def test_other_ranks_are_refused(self):
        if hvd.size() == 1:
            self.skipTest('needs two ranks')
        members = hvd.ProcessSet(range(1, hvd.size()))
        hvd.shutdown()
        hvd.init(process_sets=[members])
        self.assertEqual(members.included(), hvd.rank() > 0)
        if not members.included():
            with self.assertRaisesRegex(ValueError, 'is not a member'):
                hvd.allreduce(mine((3,)), process_set=members)
