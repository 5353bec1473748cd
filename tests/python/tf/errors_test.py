# SPDX-License-Identifier: Apache-2.0
"""Errors are raised on every rank, and the job continues. Some tests use process sets."""

import numpy as np
import tensorflow as tf

import horovod.tensorflow as hvd
from tf.case import Case, reduced


class Errors(Case):

    def setUp(self):
        if hvd.size() < 2:
            self.skipTest('one rank agrees with itself')

    def refused(self, text, function, kind=None):
        """Checks that the function fails with this text, in eager mode and in a graph."""
        for run, usual in ((function, tf.errors.FailedPreconditionError),
                           (tf.function(function), tf.errors.FailedPreconditionError)):
            with self.assertRaisesRegex(kind or usual, text):
                run()
        self.check(hvd.allreduce([2.0], op=hvd.Max), reduced(hvd.Max, (1,)) * 0 + 2)

    def test_xla_refuses_collectives_by_name(self):
        for call, name in ((lambda: hvd.allreduce(tf.ones((4,)), name='compiled'), 'HorovodAllreduce'),
                           (lambda: hvd.broadcast(tf.ones((4,)), 0), 'HorovodBroadcast')):
            with self.assertRaisesRegex((tf.errors.InvalidArgumentError, tf.errors.UnimplementedError),
                                        name):
                tf.function(call, autograph=False, jit_compile=True)()

    def test_shapes_must_be_the_same(self):
        shape = (3, 2 + hvd.rank())
        self.refused(r'Mismatched ALLREDUCE tensor shapes: One rank sent a tensor of shape',
                     lambda: hvd.allreduce(tf.ones(shape), name='shapes'))
        self.refused('Mismatched BROADCAST tensor shapes',
                     lambda: hvd.broadcast(tf.ones(shape), 0, name='broadcast.shapes'))
        self.refused('Mismatched ALLGATHER tensor shapes',
                     lambda: hvd.allgather(tf.ones(shape), name='allgather.shapes'))

    def test_types_must_be_the_same(self):
        kind = tf.float32 if hvd.rank() == 0 else tf.int32
        self.refused('Mismatched data types: One rank had type',
                     lambda: hvd.allreduce(tf.ones((3,), kind), name='types'))

    def test_roots_must_be_the_same(self):
        self.refused('Mismatched BROADCAST root ranks',
                     lambda: hvd.broadcast(tf.ones((3,)), hvd.rank() % 2, name='roots'))

    def test_operations_must_be_the_same(self):
        self.refused('Mismatched operations', lambda: (
            hvd.allreduce(tf.ones((3,)), name='kinds') if hvd.rank() == 0
            else hvd.allgather(tf.ones((3,)), name='kinds')))

    def test_scale_factors_must_be_the_same(self):
        self.refused('Mismatched prescale and/or postscale factors', lambda: hvd.allreduce(
            tf.ones((3,)), prescale_factor=1.0 + hvd.rank(), name='factors'))

    def test_scalars_have_no_rows(self):
        self.refused('rank-zero tensor', lambda: hvd.allgather(tf.constant(1.0), name='rows'))

    def test_wrong_arguments_are_invalid_argument_errors(self):
        invalid = tf.errors.InvalidArgumentError
        self.refused('root rank', lambda: hvd.broadcast(tf.ones((3,)), 99, name='root'), invalid)
        self.refused('1D splits', lambda: hvd.alltoall(tf.ones((4,)), splits=[[1, 1]]), invalid)
        self.refused('splits', lambda: hvd.alltoall(tf.ones((hvd.size(),)),
                                                    splits=[5] * hvd.size()), invalid)
        with self.assertRaises((TypeError, invalid)):
            hvd.allreduce(tf.constant([1j]))
        with self.assertRaises((TypeError, invalid)):
            hvd.allreduce(tf.constant(['text']))

    def test_unknown_process_sets_are_refused(self):
        unregistered, invented = hvd.ProcessSet([0]), hvd.ProcessSet([0])
        invented.process_set_id = 10
        slices = tf.IndexedSlices(tf.ones((1, 2)), tf.constant([0]), tf.constant([6, 2]))
        collectives = {
            'allreduce': hvd.allreduce, 'allgather': hvd.allgather,
            'reducescatter': hvd.reducescatter, 'alltoall': hvd.alltoall,
            'broadcast': lambda tensor, **options: hvd.broadcast(tensor, 0, **options),
            'grouped allreduce': lambda tensor, **options: hvd.grouped_allreduce(
                [tensor, slices], **options),
            'sparse allreduce': lambda tensor, **options: hvd.allreduce(slices, **options).values}
        for name, collective in collectives.items():
            for each in (unregistered, invented):
                with self.subTest(name):
                    self.refused('does not exist, or has not been registered', lambda: collective(
                        tf.ones((4,)), process_set=each), ValueError)

    def test_sparse_tensors_are_summed_or_averaged_only(self):
        slices = tf.IndexedSlices(tf.ones((1, 2)), tf.constant([0]), tf.constant([6, 2]))
        groups = {'alone': lambda op: hvd.allreduce(slices, op=op).values,
                  'first': lambda op: hvd.grouped_allreduce([slices, tf.ones((3,))], op=op)[1],
                  'last': lambda op: hvd.grouped_allreduce([tf.ones((3,)), slices], op=op)[0]}
        for name, group in groups.items():
            for op, text in ((hvd.Adasum, 'does not currently support sparse tensors'),
                             (hvd.Min, 'Only Sum and Average ops are supported')):
                with self.subTest(name):
                    self.refused(text, lambda: group(op), NotImplementedError)

    def test_a_group_with_sparse_tensors_is_refused_before_others_travel(self):
        # Only rank 0 calls it, which must fail without waiting for the others.
        slices = tf.IndexedSlices(tf.ones((1, 2)), tf.constant([0]), tf.constant([6, 2]))
        if hvd.rank() == 0:
            with self.assertRaises(NotImplementedError):
                hvd.grouped_allreduce([tf.ones((3,)), slices], op=hvd.Adasum)
        self.check(hvd.allreduce([2.0], op=hvd.Max), np.float32([2]))

    def test_failing_collectives_end_the_run_of_a_graph(self):
        @tf.function
        def several():
            return [hvd.allreduce(tf.ones((2 + (hvd.rank() if index % 2 else 0),)),
                                  name=f'several.{index}') for index in range(6)]

        for _ in range(3):
            with self.assertRaises(tf.errors.FailedPreconditionError):
                several()


class Sets(Case):

    @classmethod
    def setUpClass(cls):
        hvd.init()
        hvd.shutdown()
        hvd.init(process_sets='dynamic')
        size = hvd.size()
        wanted = {(0,), tuple(range(1, size)), tuple(range(0, size, 2))}
        cls.sets = [hvd.add_process_set(ranks) for ranks in sorted(wanted)
                    if 0 < len(ranks) < size]
        cls.mine = [each for each in cls.sets if each.included()]

    def test_ranks_outside_the_set_get_an_error(self):
        for each in self.sets:
            self.assertEqual(int(hvd.process_set_included_op(each.process_set_id)),
                             int(each.included()))
            if not each.included():
                with self.assertRaisesRegex(tf.errors.InvalidArgumentError, 'is not a member'):
                    hvd.allreduce(tf.ones((2,)), process_set=each)

    def test_gradients_stay_in_the_set(self):
        for each in self.mine:
            weight = tf.Variable([1.0])
            with tf.GradientTape() as tape:
                loss = weight * (hvd.rank() + 1.0)
            tape = hvd.DistributedGradientTape(tape, process_set=each, op=hvd.Sum)
            self.assertEqual(float(tape.gradient(loss, weight)[0]),
                             sum(rank + 1.0 for rank in each.ranks))
