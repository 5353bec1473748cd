# SPDX-License-Identifier: Apache-2.0
"""Collectives in graphs, their arguments and their gradients. reference/tensorflow_test.py compares
the results in every dtype and op."""

import numpy as np
import tensorflow as tf

import horovod.tensorflow as hvd
from horovod.tensorflow.compression import Compressor, FP16Compressor, NoneCompressor
from ranks import own_part
from tf.case import FLOATS, Case, in_both_modes, reduced, values


class Allreduce(Case):

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

    def test_average_is_the_default_and_the_old_argument_still_works(self):
        mine = values(hvd.rank(), (4,))
        self.check(hvd.allreduce(mine), reduced(hvd.Average, (4,)))
        with self.assertWarns(DeprecationWarning):
            self.check(hvd.allreduce(mine, average=False), reduced(hvd.Sum, (4,)))
        with self.assertRaises(ValueError):
            hvd.allreduce(mine, average=True, op=hvd.Sum)

    def test_compressors_work_alone(self):
        whole = tf.constant(values(hvd.rank(), (6,)))
        for compressor, dtype in ((NoneCompressor, tf.float32), (FP16Compressor, tf.float16)):
            self.assertTrue(issubclass(compressor, Compressor))
            small, context = compressor.compress(whole)
            self.assertEqual(small.dtype, dtype)
            self.check(compressor.decompress(small, context), values(hvd.rank(), (6,)))

    def test_a_collective_runs_even_if_its_result_is_not_used(self):
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

    def test_alltoall_returns_the_received_splits(self):
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

    def test_groups_may_be_empty(self):
        self.assertEqual(hvd.grouped_allreduce([]), [])
        self.assertEqual(hvd.grouped_reducescatter([]), [])

    def test_other_ops_of_a_reducescatter_are_refused(self):
        with self.assertRaisesRegex(tf.errors.AbortedError, 'only supports AVERAGE and SUM'):
            hvd.reducescatter(values(hvd.rank(), (7,)), op=hvd.Max)

    def test_a_groups_arguments_have_horovods_order(self):
        mine = tf.constant(values(hvd.rank(), (4,)))
        everyone = hvd.global_process_set
        result, = hvd.grouped_allreduce([mine], None, '', '', hvd.Compression.none, hvd.Sum, 2.0,
                                        0.5, everyone, False, 'order')
        self.check(result, reduced(hvd.Sum, (4,)))
        result, = hvd.grouped_reducescatter([mine], '', hvd.Compression.none, hvd.Sum, everyone,
                                            2.0, 0.5)
        self.check(result, own_part(reduced(hvd.Sum, (4,))))

    def test_graphs_infer_shapes_as_far_as_possible(self):
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
        """Checks the gradient of the sum of the function's values."""
        mine = tf.Variable(values(hvd.rank(), shape, dtype))

        def gradient():
            with tf.GradientTape() as tape:
                result = tf.reduce_sum(function(mine))
            return tape.gradient(result, mine)

        self.check_both(gradient, np.full(shape, expected, dtype.as_numpy_dtype))

    def test_the_gradient_of_allreduce_is_reduced_like_the_tensor(self):
        for dtype in FLOATS:
            for op, factor in ((hvd.Sum, hvd.size()), (hvd.Average, 1)):
                self.check_gradient(
                    lambda x: hvd.allreduce(x, op=op, postscale_factor=2.0), 2 * factor,
                    (3, 4), dtype)

    def test_the_gradients_of_a_group_are_reduced_like_the_tensors(self):
        self.check_gradient(
            lambda x: sum((index + 1.0) * tf.reduce_sum(each) for index, each in enumerate(
                hvd.grouped_allreduce([x, 2 * x, 3 * x], op=hvd.Sum))),
            14 * hvd.size(), (5,))

    def test_the_gradient_of_allgather_is_the_average_of_the_ranks_own_rows(self):
        self.check_gradient(hvd.allgather, 1, (hvd.rank() + 1, 2))
        self.check_gradient(lambda x: hvd.allgather(x) * (hvd.rank() + 1.0),
                            (hvd.size() + 1) / 2, (hvd.rank() + 1, 2))

    def test_the_gradient_of_broadcast_is_for_the_root(self):
        self.check_gradient(lambda x: hvd.broadcast(x, 0), 1 if hvd.rank() == 0 else 0, (4,))

    def test_the_gradient_of_alltoall_returns_to_the_senders(self):
        self.check_gradient(lambda x: hvd.alltoall(x) * (hvd.rank() + 1.0),
                            np.repeat(np.arange(hvd.size()) + 1.0, 2), (2 * hvd.size(),))

    def test_the_gradient_of_reducescatter_is_gathered(self):
        for op, factor in ((hvd.Sum, hvd.size()), (hvd.Average, 1)):
            self.check_gradient(lambda x: hvd.reducescatter(x, op=op, prescale_factor=0.5),
                                0.5 * factor, (5, 2))
