# SPDX-License-Identifier: Apache-2.0
"""Every collective on tensors of TensorFlow, in eager mode and in tf.function."""

import numpy as np
import tensorflow as tf

import horovod.tensorflow as hvd
from horovod.tensorflow.compression import Compressor, FP16Compressor, NoneCompressor
from ranks import own_part
from tf.case import ALL, FLOATS, NUMBERS, SHAPES, Case, in_both_modes
from tf.case import reduced, stacked, values


class Allreduce(Case):

    def test_every_dtype_and_op_gives_the_reference(self):
        for dtype in NUMBERS:
            for op in (hvd.Average, hvd.Sum, hvd.Min, hvd.Max, hvd.Product):
                for shape in SHAPES:
                    with self.subTest(dtype=dtype, op=op, shape=shape):
                        mine = values(hvd.rank(), shape, dtype)
                        self.check(hvd.allreduce(mine, op=op), reduced(op, shape, dtype))

    def test_every_dtype_gives_the_reference_in_a_graph(self):
        mine = [values(hvd.rank(), (3, 4), dtype) for dtype in NUMBERS]
        inputs = [tf.Variable(each) for each in mine]

        @tf.function
        def together():
            return [hvd.allreduce(each, op=hvd.Sum) for each in inputs]

        for _ in range(3):
            for dtype, result in zip(NUMBERS, together()):
                self.check(result, reduced(hvd.Sum, (3, 4), dtype))

    def test_the_input_stays_as_it_was(self):
        mine = tf.Variable(values(hvd.rank(), (1031,)))
        constant = tf.constant(values(hvd.rank(), (1031,)))

        @tf.function
        def both():
            return hvd.allreduce(mine, op=hvd.Sum), hvd.allreduce(constant, op=hvd.Sum)

        for _ in range(3):
            for result in both():
                self.check(result, reduced(hvd.Sum, (1031,)))
        self.check(mine, values(hvd.rank(), (1031,)))
        self.check(constant, values(hvd.rank(), (1031,)))

    def test_a_temporary_may_be_reduced_in_its_place(self):
        mine = tf.Variable(values(hvd.rank(), (64, 64)))
        self.check_both(lambda: hvd.allreduce(mine + mine, op=hvd.Sum),
                        2 * reduced(hvd.Sum, (64, 64)))

    def test_bool_sum_is_or(self):
        everything = stacked(hvd.size(), (16,), tf.bool)
        self.check_both(lambda: hvd.allreduce(everything[hvd.rank()], op=hvd.Sum),
                        everything.any(0))

    def test_average_is_the_default_and_the_old_argument_still_works(self):
        mine = values(hvd.rank(), (4,))
        self.check(hvd.allreduce(mine), reduced(hvd.Average, (4,)))
        with self.assertWarns(DeprecationWarning):
            self.check(hvd.allreduce(mine, average=False), reduced(hvd.Sum, (4,)))
        with self.assertRaises(ValueError):
            hvd.allreduce(mine, average=True, op=hvd.Sum)

    def test_scale_factors_apply_before_and_after(self):
        mine = values(hvd.rank(), (7,), tf.float64)
        self.check_both(lambda: hvd.allreduce(mine, op=hvd.Sum, prescale_factor=1 / 3,
                                              postscale_factor=0.1),
                        (stacked(hvd.size(), (7,), tf.float64) / 3).sum(0) * 0.1)

    def test_group_is_reduced_as_one_whatever_is_in_it(self):
        shapes = [(5,), (2, 3), (0,), ()]
        kinds = [tf.float32, tf.float64, tf.int32, tf.bfloat16]
        mine = [values(hvd.rank(), *each, salt) for salt, each in enumerate(zip(shapes, kinds))]
        for results in in_both_modes(lambda: hvd.grouped_allreduce(mine, op=hvd.Sum)):
            for salt, (result, shape, kind) in enumerate(zip(results, shapes, kinds)):
                self.check(result, reduced(hvd.Sum, shape, kind, salt))
        self.assertEqual(hvd.grouped_allreduce([]), [])

    def test_compression_returns_the_original_dtype(self):
        for compression in (hvd.Compression.fp16, hvd.Compression.bf16):
            for dtype in (tf.float32, tf.float64, tf.int32):
                mine = values(hvd.rank(), (6,), dtype)
                self.check_both(
                    lambda: hvd.allreduce(mine, op=hvd.Sum, compression=compression),
                    reduced(hvd.Sum, (6,), dtype))

    def test_compressors_work_alone(self):
        whole = tf.constant(values(hvd.rank(), (6,)))
        for compressor, dtype in ((NoneCompressor, tf.float32), (FP16Compressor, tf.float16)):
            self.assertTrue(issubclass(compressor, Compressor))
            small, context = compressor.compress(whole)
            self.assertEqual(small.dtype, dtype)
            self.check(compressor.decompress(small, context), values(hvd.rank(), (6,)))

    def test_indexed_slices_give_the_rows_of_all_ranks(self):
        rank, size = hvd.rank(), hvd.size()
        dense = np.zeros((6, 2), np.float32)
        for each in range(size):
            np.add.at(dense, [each, 5], values(each, (2, 2)))
        for op, right in ((hvd.Sum, dense), (hvd.Average, dense / size)):
            def sparse():
                return tf.convert_to_tensor(hvd.allreduce(tf.IndexedSlices(
                    tf.constant(values(rank, (2, 2))), tf.constant([rank, 5]),
                    dense_shape=tf.constant([6, 2])), op=op))
            self.check_both(sparse, right)
    def test_a_group_may_have_sparse_and_dense_members(self):
        slices = tf.IndexedSlices(tf.ones((1, 2)), tf.constant([hvd.rank()]),
                                  tf.constant([8, 2]))
        mine = tf.constant(values(hvd.rank(), (3,)))
        for dense, sparse, last in in_both_modes(lambda: [
                tf.convert_to_tensor(each)
                for each in hvd.grouped_allreduce([mine, slices, 2 * mine], op=hvd.Sum)]):
            self.check(dense, reduced(hvd.Sum, (3,)))
            self.check(last, 2 * reduced(hvd.Sum, (3,)))
            self.check(tf.reduce_sum(sparse), np.float32(2 * hvd.size()))

    def test_what_nobody_uses_runs_all_the_same(self):
        @tf.function
        def unused_on_others(x):
            result = hvd.allreduce(x, op=hvd.Sum, name='unused_on_others')
            return result if hvd.rank() == 0 else x

        mine = values(hvd.rank(), (4,))
        for _ in range(3):
            result = unused_on_others(mine)
        self.check(result, reduced(hvd.Sum, (4,)) if hvd.rank() == 0 else mine)

    def test_a_constant_is_reduced_in_each_run_of_a_graph(self):
        @tf.function
        def broadcast_from_a_constant():
            mine = tf.constant([7.0]) if hvd.rank() == 0 else tf.random.uniform([1])
            return hvd.broadcast(mine, 0, name='from_a_constant')

        for _ in range(4):
            self.check(broadcast_from_a_constant(), np.float32([7.0]))


class Others(Case):

    def test_allgather_concatenates_rows_of_every_dtype(self):
        for dtype in ALL:
            for tail in ((), (3,), (2, 2)):
                with self.subTest(dtype=dtype, tail=tail):
                    parts = [values(rank, (rank, *tail), dtype) for rank in range(hvd.size())]
                    self.check_both(lambda: hvd.allgather(parts[hvd.rank()]),
                                    np.concatenate(parts))

    def test_grouped_allgather_gathers_each(self):
        parts = [[values(rank, (rank + 1, 2), dtype) for rank in range(hvd.size())]
                 for dtype in (tf.float32, tf.int64)]
        for results in in_both_modes(lambda: hvd.grouped_allgather(
                [each[hvd.rank()] for each in parts])):
            for result, each in zip(results, parts):
                self.check(result, np.concatenate(each))

    def test_broadcast_gives_the_roots_tensor(self):
        for dtype in ALL:
            for root in {0, hvd.size() - 1}:
                self.check_both(lambda: hvd.broadcast(values(hvd.rank(), (3, 2), dtype), root),
                                values(root, (3, 2), dtype))

    def test_alltoall_sends_equal_parts_without_splits(self):
        size, rank = hvd.size(), hvd.rank()
        for dtype in ALL:
            everything = stacked(size, (2 * size, 3), dtype)
            self.check_both(lambda: hvd.alltoall(everything[rank]),
                            np.concatenate(everything[:, 2 * rank:2 * rank + 2]))

    def test_alltoall_tells_the_received_splits(self):
        size, rank = hvd.size(), hvd.rank()
        splits = [[(source + target) % 3 for target in range(size)] for source in range(size)]
        inputs = [values(source, (sum(splits[source]), 2)) for source in range(size)]
        begins = np.cumsum([[0] + each for each in splits], axis=1)
        expected = np.concatenate([inputs[source][begins[source][rank]:begins[source][rank + 1]]
                                   for source in range(size)])
        for output, received in in_both_modes(
                lambda: hvd.alltoall(inputs[rank], splits=splits[rank])):
            self.check(output, expected)
            self.check(received, np.int32([splits[source][rank] for source in range(size)]))

    def test_reducescatter_leaves_each_rank_its_rows(self):
        for dtype in NUMBERS:
            for op in (hvd.Sum, hvd.Average):
                self.check_both(
                    lambda: hvd.reducescatter(values(hvd.rank(), (7, 2), dtype), op=op),
                    own_part(reduced(op, (7, 2), dtype)))
        with self.assertRaisesRegex(tf.errors.AbortedError, 'only supports AVERAGE and SUM'):
            hvd.reducescatter(values(hvd.rank(), (7,)), op=hvd.Max)

    def test_grouped_reducescatter_scatters_each(self):
        mine = [values(hvd.rank(), (5, 2)), values(hvd.rank(), (3,), tf.int32, 1)]
        right = [reduced(hvd.Sum, (5, 2)), reduced(hvd.Sum, (3,), tf.int32, 1)]
        for results in in_both_modes(lambda: hvd.grouped_reducescatter(mine, op=hvd.Sum)):
            for result, each in zip(results, right):
                self.check(result, own_part(each))
        self.assertEqual(hvd.grouped_reducescatter([]), [])

    def test_a_groups_arguments_have_horovods_order(self):
        mine = tf.constant(values(hvd.rank(), (4,)))
        everyone = hvd.global_process_set
        result, = hvd.grouped_allreduce([mine], None, '', '', hvd.Compression.none, hvd.Sum, 2.0,
                                        0.5, everyone, False, 'order')
        self.check(result, reduced(hvd.Sum, (4,)))
        result, = hvd.grouped_reducescatter([mine], '', hvd.Compression.none, hvd.Sum, everyone,
                                            2.0, 0.5)
        self.check(result, own_part(reduced(hvd.Sum, (4,))))

    def test_graphs_know_the_shapes_that_can_be_known(self):
        @tf.function(input_signature=[tf.TensorSpec((6, None, 2))])
        def shapes(x):
            flow = [hvd.allreduce(x), hvd.broadcast(x, 0), hvd.allgather(x), hvd.alltoall(x),
                    hvd.reducescatter(x)]
            self.assertEqual([each.shape.as_list() for each in flow],
                             [[6, None, 2]] * 2 + [[None, None, 2]] * 3)
            return flow[0]

        shapes.get_concrete_function()

    def test_ranks_and_sizes_are_operations(self):
        def numbers():
            return [hvd.rank_op(), hvd.local_rank_op(), hvd.size_op(), hvd.local_size_op(),
                    hvd.process_set_included_op()]

        for results in in_both_modes(numbers):
            self.assertEqual([int(each) for each in results],
                             [hvd.rank(), hvd.local_rank(), hvd.size(), hvd.local_size(), 1])

    def test_join_lets_the_others_go_on(self):
        for _ in range(hvd.rank()):
            self.assertEqual(hvd.allreduce([1.0], op=hvd.Sum, name='joined').shape, (1,))
        self.assertIn(int(hvd.join()), range(hvd.size()))


class Gradients(Case):

    def check_gradient(self, function, expected, shape, dtype=tf.float32):
        """Of the sum of the function's values."""
        mine = tf.Variable(values(hvd.rank(), shape, dtype))

        def gradient():
            with tf.GradientTape() as tape:
                result = tf.reduce_sum(function(mine))
            return tape.gradient(result, mine)

        self.check_both(gradient, np.full(shape, expected, dtype.as_numpy_dtype))

    def test_allreduces_is_reduced_as_the_tensor_was(self):
        for dtype in FLOATS:
            for op, factor in ((hvd.Sum, hvd.size()), (hvd.Average, 1)):
                self.check_gradient(
                    lambda x: hvd.allreduce(x, op=op, postscale_factor=2.0), 2 * factor,
                    (3, 4), dtype)

    def test_a_groups_is_reduced_as_the_tensors_were(self):
        self.check_gradient(
            lambda x: sum((index + 1.0) * tf.reduce_sum(each) for index, each in enumerate(
                hvd.grouped_allreduce([x, 2 * x, 3 * x], op=hvd.Sum))),
            14 * hvd.size(), (5,))

    def test_allgathers_is_the_average_of_the_own_rows(self):
        self.check_gradient(hvd.allgather, 1, (hvd.rank() + 1, 2))
        self.check_gradient(lambda x: hvd.allgather(x) * (hvd.rank() + 1.0),
                            (hvd.size() + 1) / 2, (hvd.rank() + 1, 2))

    def test_broadcasts_is_for_the_root(self):
        self.check_gradient(lambda x: hvd.broadcast(x, 0), 1 if hvd.rank() == 0 else 0, (4,))

    def test_alltoalls_goes_back_to_where_rows_came_from(self):
        self.check_gradient(lambda x: hvd.alltoall(x) * (hvd.rank() + 1.0),
                            np.repeat(np.arange(hvd.size()) + 1.0, 2), (2 * hvd.size(),))

    def test_reducescatters_is_gathered(self):
        for op, factor in ((hvd.Sum, hvd.size()), (hvd.Average, 1)):
            self.check_gradient(lambda x: hvd.reducescatter(x, op=op, prescale_factor=0.5),
                                0.5 * factor, (5, 2))
