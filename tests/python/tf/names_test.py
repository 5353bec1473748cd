# SPDX-License-Identifier: Apache-2.0
"""Undocumented names of Horovod that Horovod's tests and other projects use."""

import numpy as np
import tensorflow as tf

import horovod.tensorflow as hvd
from horovod import _keras
from horovod._keras import callbacks, elastic
from horovod.common.util import gpu_available, split_list
from horovod.tensorflow import (_LegacyOptimizer, gradient_aggregation,
                                handle_average_backwards_compatibility, mpi_ops, util)
from horovod.tensorflow.gradient_aggregation_eager import LocalGradientAggregationHelperEager
from ranks import own_part
from tf.case import Case, in_both_modes, reduced, values

PASSES = 3


class Tools(Case):

    def test_the_mode_of_tensorflow_is_returned(self):
        in_graph = []
        tf.function(lambda: in_graph.append(util._executing_eagerly()))()
        self.assertEqual([hvd._executing_eagerly(), mpi_ops._executing_eagerly(), *in_graph],
                         [True, True, False])
        self.assertEqual(float(hvd._make_subgraph(lambda x: x + 1)(tf.constant(1.0))), 2.0)

    def test_results_are_kept_for_their_arguments_and_mode(self):
        made = []
        make = hvd._cache(lambda *arguments: made.append(arguments) or len(made))
        self.assertEqual([make(1), make(2), make(1), tf.function(lambda: make(1))().numpy()],
                         [1, 2, 1, 3])

    def test_variables_become_references_and_back(self):
        first, second = tf.Variable(1.0), tf.Variable(2.0)
        references = hvd.vars_to_refs([[first], [second]])
        self.assertEqual(references, ((first.ref(),), (second.ref(),)))
        self.assertEqual(hash(references), hash(util.vars_to_refs([[first], [second]])))
        (one,), (two,) = hvd.refs_to_vars(references)
        self.assertIs(one, first)
        self.assertIs(two, second)

    def test_small_names_mean_what_they_do_in_horovod(self):
        self.assertEqual(mpi_ops._normalize_name('a/b:0'), 'a_b_0')
        self.assertEqual(handle_average_backwards_compatibility(None, False), hvd.Sum)
        self.assertIs(hvd.gpu_available, gpu_available)
        self.assertIs(mpi_ops.gpu_available, gpu_available)
        self.assertIs(hvd.split_list, split_list)
        self.assertIs(hvd.util, util)
        self.assertTrue(hvd._IS_TF2 and _keras._IS_TF2 and not _keras._PRE_TF_2_4_0)
        optimizer = tf.compat.v1.train.GradientDescentOptimizer(1.0)
        self.assertIsInstance(optimizer, _LegacyOptimizer)
        self.assertIsInstance(hvd.DistributedOptimizer(optimizer, op=hvd.Adasum),
                              hvd._DistributedAdasumOptimizer)


class Collectives(Case):

    def test_reductions_are_sums(self):
        mine = tf.constant(values(hvd.rank(), (5, 2)))
        for result in in_both_modes(lambda: [
                hvd._allreduce(mine), mpi_ops._allreduce(mine, op=hvd.Max),
                *hvd._grouped_allreduce([mine, mine]), hvd._allreduce_cond(mine, op=hvd.Sum),
                *hvd._grouped_allreduce_cond([mine], op=hvd.Sum)]):
            self.check(result[1], reduced(hvd.Max, (5, 2)))
            for each in result[:1] + result[2:]:
                self.check(each, reduced(hvd.Sum, (5, 2)))
        for result in in_both_modes(lambda: [hvd._reducescatter(mine),
                                             *hvd._grouped_reducescatter([mine, mine])]):
            for each in result:
                self.check(each, own_part(reduced(hvd.Sum, (5, 2))))

    def test_a_gradient_may_be_wrapped(self):
        with tf.Graph().as_default() as graph:
            hvd.alltoall(tf.ones((hvd.size(),)), splits=[1] * hvd.size())
            operation, = [each for each in graph.get_operations()
                          if each.type in ('HorovodAlltoall', 'PyFunc')]
            if operation.type == 'PyFunc':
                self.skipTest('without the native operations, the gradient of alltoall is no node of the graph')
            gradient, nothing = mpi_ops._alltoall_grad(operation, tf.ones((hvd.size(),)), None)
        self.assertEqual(gradient.dtype, tf.float32)
        self.assertIsNone(nothing)

    def test_gradients_are_reduced_by_the_function_that_is_made(self):
        mine = tf.constant([hvd.rank() + 1.0])
        mean = np.float32([(hvd.size() + 1) / 2])
        for groups in (None, 0, 1):
            reduce = hvd._make_allreduce_grads_fn('name', '', '', hvd.Compression.none, False,
                                                  hvd.Average, 2.0, groups)
            for first, nothing, last in (reduce([mine, None, mine]),
                                         reduce((mine, None, mine), [None] * 3, True)):
                self.check(first, mean)
                self.assertIsNone(nothing)
                self.check(last, mean)
        total = hvd._make_allreduce_grads_fn('name', '', '', hvd.Compression.none, False, hvd.Sum,
                                             2.0, None, hvd.global_process_set)
        self.check(total([mine])[0], mean * hvd.size())


class Passes(Case):

    def helper(self, eager, **settings):
        reduce = hvd._make_allreduce_grads_fn('name', '', '', hvd.Compression.none, False,
                                              hvd.Average, 1.0, None)
        kind = gradient_aggregation.LocalGradientAggregationHelper
        self.assertNotEqual(kind._OPTIMIZER_TYPE_KERAS, kind._OPTIMIZER_TYPE_LEGACY)
        if eager:
            return LocalGradientAggregationHelperEager(PASSES, reduce, True, **settings)
        self.assertIs(hvd.LocalGradientAggregationHelper, kind)
        return kind(PASSES, reduce, True, rank=hvd.rank(), name='passes',
                    optimizer_type=kind._OPTIMIZER_TYPE_LEGACY, **settings)

    def test_gradients_are_added_up_and_reduced_in_the_last_pass(self):
        mean = (hvd.size() + 1) / 2
        for eager in (True, False):
            for averages in (True, False):
                helper = self.helper(eager, average_aggregated_gradients=averages)
                optimizer = tf.keras.optimizers.SGD()
                variable, unused, own = (tf.Variable([0.0]) for _ in range(3))
                helper.register_local_var(own)

                @tf.function
                def step():
                    mine = tf.constant([hvd.rank() + 1.0])
                    found = helper.compute_gradients((mine, None, mine), (variable, unused, own))
                    self.assertIsNone(found[1])
                    helper.apply_gradients(lambda: tf.group(
                        variable.assign_add(found[0]), own.assign_add(found[2])), optimizer)

                for done in range(1, 2 * PASSES + 2):
                    step()
                    self.assertEqual(int(helper.counter), done % PASSES)
                    made = done // PASSES * (1 if averages else PASSES)
                    self.check(variable, np.float32([made * mean]))
                    self.check(own, np.float32([made * (hvd.rank() + 1) / hvd.size()]))
                self.assertEqual(int(optimizer.iterations), 2 * PASSES + 1 - 2)


class Keras(Case):

    def test_classes_of_callbacks_have_horovods_names(self):
        import horovod.tensorflow.keras as hvd_keras
        for kind in (callbacks.BroadcastGlobalVariablesCallbackImpl,
                     callbacks.MetricAverageCallbackImpl,
                     callbacks.LearningRateScheduleCallbackImpl,
                     callbacks.LearningRateWarmupCallbackImpl, elastic.CommitStateCallbackImpl,
                     elastic.UpdateBatchStateCallbackImpl, elastic.UpdateEpochStateCallbackImpl):
            package = hvd_keras.callbacks if kind.__module__ == callbacks.__name__ \
                else hvd_keras.elastic
            self.assertTrue(issubclass(getattr(package, f'{kind.__name__}Callback'), kind))
        with self.assertRaisesRegex(TypeError, 'must be derived from'):
            callbacks.MetricAverageCallbackImpl()

    def test_an_optimizer_is_made_by_horovods_function(self):
        import horovod.tensorflow.keras as hvd_keras
        optimizer = _keras.create_distributed_optimizer(
            tf.keras, tf.keras.optimizers.SGD(1.0), None, '', '', hvd_keras.Compression.none,
            False, 1.0, hvd_keras.Average, process_set=hvd.global_process_set)
        self.assertIsInstance(optimizer, _keras.optimizer.Distributed)
        variable = tf.keras.layers.Dense(1, use_bias=False, kernel_initializer='zeros')
        variable.build((None, 1))
        optimizer.apply_gradients([(tf.constant([[hvd.rank() + 1.0]]), variable.kernel)])
        self.check(tf.convert_to_tensor(variable.kernel), np.float32([[-(hvd.size() + 1) / 2]]))
