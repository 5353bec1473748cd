# SPDX-License-Identifier: Apache-2.0
"""DistributedOptimizer of the Keras packages, compared with gradients that the tests compute. All
optimizers have the learning rate 1, so that a step subtracts the gradient from its variable."""

import unittest
import warnings

import numpy
from keras_case import (BACKEND, IS_KERAS3, PACKAGE, Case, apply, hvd, keras, optimizer_kinds,
                        sgd, tensor, to_numpy, variable)

from horovod import _keras

if BACKEND == 'tensorflow':
    import tensorflow as tf


def ranks():
    return numpy.arange(hvd.size(), dtype='float64')


class Reduction(Case):
    def test_gradients_are_averaged_before_the_step(self):
        for name, module in optimizer_kinds():
            with self.subTest(name):
                weights = [variable([1., 2.]), variable([[3.]])]
                optimizer = hvd.DistributedOptimizer(module.SGD(1.0))
                apply(optimizer, [[hvd.rank(), 1], [[2 * hvd.rank()]]], weights)
                mean = ranks().mean()
                self.check(weights[0], [1 - mean, 1])
                self.check(weights[1], [[3 - 2 * mean]])

    def test_a_variable_without_gradient_is_left_alone(self):
        weights = [variable([1.]), variable([2.]), variable([3.])]
        apply(hvd.DistributedOptimizer(sgd()), [[hvd.rank()], None, [1]], weights)
        for weight, expected in zip(weights, (1 - ranks().mean(), 2, 2)):
            self.check(weight, [expected])

    def test_op_sum_adds_gradients(self):
        weights = [variable([0.])]
        apply(hvd.DistributedOptimizer(sgd(), op=hvd.Sum), [[hvd.rank() + 1]], weights)
        self.check(weights[0], [-(ranks() + 1).sum()])

    def test_predivide_factor_changes_rounding_only(self):
        weights = [variable([0.])]
        apply(hvd.DistributedOptimizer(sgd(), gradient_predivide_factor=4.0), [[hvd.rank()]],
              weights)
        self.check(weights[0], [-ranks().mean()])

    def test_compression_sends_half_precision(self):
        weights = [variable([0.])]
        optimizer = hvd.DistributedOptimizer(sgd(), compression=hvd.Compression.fp16)
        apply(optimizer, [[1 + 2.0 ** -14]], weights)
        self.check(weights[0], [-1.0 if hvd.size() > 1 else -1 - 2.0 ** -14], 1e-7)

    def test_groups_do_not_change_results(self):
        weights = [variable([0.]) for _ in range(5)]
        for groups in (1, 2, 9, [[weights[0], weights[3]], [weights[4], weights[1]]]):
            with self.subTest(groups=groups if isinstance(groups, int) else 'lists'):
                before = [to_numpy(weight).copy() for weight in weights]
                apply(hvd.DistributedOptimizer(sgd(), groups=groups),
                      [[hvd.rank() * index] for index in range(5)], weights)
                for index, weight in enumerate(weights):
                    self.check(weight, before[index] - ranks().mean() * index)

    def test_num_groups_is_deprecated_and_works(self):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter('always')
            optimizer = hvd.DistributedOptimizer(sgd(), num_groups=2)
        self.assertIn(DeprecationWarning, [each.category for each in caught])
        weights = [variable([0.]), variable([0.])]
        apply(optimizer, [[hvd.rank()], [1]], weights)
        self.check(weights[0], [-ranks().mean()])

    def test_clipping_comes_after_averaging(self):
        for name, module in optimizer_kinds():
            with self.subTest(name):
                weights = [variable([0., 0.])]
                # Large gradients of opposite signs cancel out, so their average is not clipped.
                sign = 1.0 if hvd.rank() % 2 == 0 else -1.0
                apply(hvd.DistributedOptimizer(module.SGD(1.0, clipnorm=1.0)),
                      [[100 * sign, 0.5]], weights)
                mean = numpy.array([100 * (hvd.size() % 2) / hvd.size(), 0.5])
                self.check(weights[0], -mean / max(1.0, numpy.linalg.norm(mean)))

    def test_only_the_process_set_shares_gradients(self):
        if hvd.size() < 2:
            self.skipTest('needs two ranks')
        others = hvd.add_process_set(range(1, hvd.size()))
        weights = [variable([0.])]
        apply(hvd.DistributedOptimizer(sgd(), process_set=others), [[hvd.rank() + 5]], weights)
        self.check(weights[0], [-(ranks()[1:] + 5).mean() if others.included() else -5])
        hvd.remove_process_set(others)


class LocalVariables(Case):
    def test_a_local_variable_keeps_its_gradient_divided_by_size(self):
        self._check_local(1.0 / hvd.size(), {})

    def test_without_scaling_a_local_variable_keeps_its_gradient(self):
        self._check_local(1.0, {'scale_local_gradients': False})

    def _check_local(self, factor, arguments):
        for name, module in optimizer_kinds():
            with self.subTest(name):
                weights = [variable([0.]), variable([0.])]
                optimizer = hvd.DistributedOptimizer(module.SGD(1.0), **arguments)
                optimizer.register_local_var(weights[0])
                apply(optimizer, [[hvd.rank() + 1], [hvd.rank() + 1]], weights)
                self.check(weights[0], [-(hvd.rank() + 1) * factor])
                self.check(weights[1], [-(ranks() + 1).mean()])

    def test_the_partial_optimizer_leaves_local_layers_alone(self):
        layers = [keras.layers.Dense(1, use_bias=False, kernel_initializer='zeros')
                  for _ in range(2)]
        for layer in layers:
            layer.build((None, 1))
        optimizer = hvd.PartialDistributedOptimizer(sgd(), local_layers=layers[0])
        apply(optimizer, [[[hvd.rank() + 1]], [[hvd.rank() + 1]]],
              [layer.kernel for layer in layers])
        self.check(layers[0].kernel, [[-(hvd.rank() + 1) / hvd.size()]])
        self.check(layers[1].kernel, [[-(ranks() + 1).mean()]])

    def test_arguments_that_are_not_layers_or_variables_are_rejected(self):
        with self.assertRaisesRegex(ValueError, 'local layers must be of'):
            hvd.PartialDistributedOptimizer(sgd(), local_layers=['dense'])
        with self.assertRaisesRegex(ValueError, 'build it'):
            hvd.PartialDistributedOptimizer(sgd(), local_layers=keras.layers.Dense(1))
        with self.assertRaisesRegex(ValueError, 'local variables must be of'):
            hvd.DistributedOptimizer(sgd()).register_local_var([1.0])


class Passes(Case):
    def _run(self, module, passes, average=False):
        weights = [variable([0.]), variable([0.])]
        optimizer = hvd.DistributedOptimizer(module.SGD(1.0), backward_passes_per_step=2,
                                             average_aggregated_gradients=average)
        positions = []
        for index in range(passes):
            apply(optimizer, [[hvd.rank() + 10 * index], [1]], weights)
            positions.append(float(to_numpy(weights[0])[0]))
        self.assertEqual(int(to_numpy(optimizer.iterations)), passes)
        return positions

    def test_a_step_adds_up_the_gradients_of_its_passes(self):
        mean = ranks().mean()
        for name, module in optimizer_kinds():
            with self.subTest(name):
                self.check(self._run(module, 5),
                           [0, -2 * mean - 10, -2 * mean - 10, -4 * mean - 60, -4 * mean - 60])

    def test_a_step_can_average_the_gradients_of_its_passes(self):
        mean = ranks().mean()
        for name, module in optimizer_kinds():
            with self.subTest(name):
                self.check(self._run(module, 2, average=True), [0, -mean - 5])

    def test_passes_are_counted(self):
        if BACKEND == 'torch':
            self.skipTest('its passes are counted by a number')
        for name, module in optimizer_kinds():
            with self.subTest(name):
                optimizer = hvd.DistributedOptimizer(module.SGD(1.0), backward_passes_per_step=3)
                weights = [variable([0.])]
                for index in range(1, 8):
                    apply(optimizer, [[1]], weights)
                    self.assertEqual(optimizer._agg_helper.counter.numpy(), index % 3)
        self.assertIsNone(hvd.DistributedOptimizer(sgd())._agg_helper)


@unittest.skipIf(IS_KERAS3, 'optimizers of Keras 3 do not compute gradients')
class Early(Case):
    """Scripts that ask for the reduced gradients before they apply them."""

    def test_gradients_are_reduced_once(self):
        for name, module in optimizer_kinds():
            with self.subTest(name):
                weight = variable([0.])
                optimizer = hvd.DistributedOptimizer(module.SGD(1.0), op=hvd.Sum)
                for index in range(1, 4):
                    pairs = optimizer._compute_gradients(
                        lambda: weight * (hvd.rank() + 1.0), [weight])
                    self.check(pairs[0][0], [(ranks() + 1).sum()])
                    optimizer.apply_gradients(pairs)
                    self.check(weight, [-index * (ranks() + 1).sum()])

    def test_passes_are_counted_once(self):
        for name, module in optimizer_kinds():
            with self.subTest(name):
                weight = variable([0.])
                optimizer = hvd.DistributedOptimizer(module.SGD(1.0), backward_passes_per_step=2)

                @tf.function
                def step():
                    optimizer.apply_gradients(optimizer._compute_gradients(
                        lambda: weight * (hvd.rank() + 1.0), [weight]))

                for index in range(1, 6):
                    step()
                    self.check(weight, [-(index // 2) * 2 * (ranks() + 1).mean()])
                    self.assertEqual(optimizer._agg_helper.counter.numpy(), index % 2)
                    self.assertEqual(int(to_numpy(optimizer.iterations)), index)

    def test_gradients_of_a_loss_are_reduced_once(self):
        for name, module in optimizer_kinds():
            class Given(module.SGD):
                def get_gradients(self, loss, params):
                    return [tensor([hvd.rank() + 1.0])]

            with self.subTest(name):
                weight = variable([0.])
                optimizer = hvd.DistributedOptimizer(Given(1.0), op=hvd.Sum)
                gradient, = optimizer.get_gradients(None, [weight])
                self.check(gradient, [(ranks() + 1).sum()])
                optimizer.apply_gradients([(gradient, weight)])
                self.check(weight, [-(ranks() + 1).sum()])

    def test_local_gradients_stay(self):
        weights = [variable([0.]), variable([0.])]
        optimizer = hvd.DistributedOptimizer(keras.optimizers.legacy.SGD(1.0))
        optimizer.register_local_var(weights[0])
        with tf.GradientTape() as tape:
            loss = (weights[0] + weights[1]) * (hvd.rank() + 1.0)
        (own, _), (shared, _) = optimizer._compute_gradients(loss, weights, tape=tape)
        self.check(own, [(hvd.rank() + 1) / hvd.size()])
        self.check(shared, [(ranks() + 1).mean()])

    def test_minimize_reduces_gradients_once(self):
        for name, module in optimizer_kinds():
            with self.subTest(name):
                weight = variable([0.])
                optimizer = hvd.DistributedOptimizer(module.SGD(1.0), op=hvd.Sum)
                optimizer.minimize(lambda: weight * (hvd.rank() + 1.0), [weight])
                self.check(weight, [-(ranks() + 1).sum()])
                apply(optimizer, [[1]], [weight])
                self.check(weight, [-(ranks() + 1).sum() - hvd.size()])


class Identity(Case):
    def test_the_class_is_the_optimizers_own_by_name_and_kind(self):
        for name, module in optimizer_kinds():
            with self.subTest(name):
                optimizer = hvd.DistributedOptimizer(module.Adam(0.25, name='adam'))
                self.assertIsInstance(optimizer, module.Adam)
                self.assertEqual(type(optimizer).__name__, 'Adam')
                self.assertEqual(optimizer.get_config(),
                                 module.Adam(0.25, name='adam').get_config())

    def test_variables_are_a_list_that_may_be_called(self):
        for name, module in optimizer_kinds():
            with self.subTest(name):
                optimizer = hvd.DistributedOptimizer(module.SGD(1.0, momentum=0.5))
                apply(optimizer, [[1]], [variable([0.])])
                self.assertGreaterEqual(len(list(optimizer.variables)), 2)
                for one, other in zip(optimizer.variables, optimizer.variables()):
                    self.assertIs(one, other)
        self.assertEqual(_keras.CallableList([1, 2])(), [1, 2])

    def test_from_config_makes_a_distributed_optimizer(self):
        first = hvd.DistributedOptimizer(sgd(), op=hvd.Sum)
        second = type(first).from_config(first.get_config())
        self.assertEqual(first.get_config(), second.get_config())
        weights = [variable([0.])]
        apply(second, [[1]], weights)
        self.check(weights[0], [-hvd.size()])

    def test_state_is_shared_with_the_given_optimizer(self):
        weights = [variable([0.])]
        optimizer = sgd(momentum=0.5)
        apply(optimizer, [[1]], weights)
        distributed = hvd.DistributedOptimizer(optimizer)
        self.assertEqual(int(to_numpy(distributed.iterations)), 1)
        apply(distributed, [[hvd.rank()]], weights)
        self.check(weights[0], [-1 - 0.5 - ranks().mean()])

    def test_an_optimizer_without_state_may_be_given_twice(self):
        class Rate(keras.optimizers.schedules.LearningRateSchedule):
            """A schedule whose class Keras cannot find by its name."""

            def __call__(self, step):
                return 1.0

            def get_config(self):
                return {}

        for name, module in optimizer_kinds():
            with self.subTest(name):
                given = module.SGD(Rate(), momentum=0.5)
                for index in (1, 2):
                    weights = [variable([0.])]
                    apply(hvd.DistributedOptimizer(given), [[index]], weights)
                    self.check(weights[0], [-index])

    def test_sparse_gradients_are_reduced(self):
        if BACKEND != 'tensorflow':
            self.skipTest('Keras makes sparse gradients on TensorFlow only')
        import tensorflow as tf
        for as_dense in (False, True):
            with self.subTest(as_dense=as_dense):
                table = variable(numpy.zeros((hvd.size() + 1, 2)))
                optimizer = hvd.DistributedOptimizer(sgd(), sparse_as_dense=as_dense)
                slices = tf.IndexedSlices(tensor([[1, 2], [3, 4]]),
                                          tf.constant([hvd.rank(), hvd.size()]),
                                          tf.constant([hvd.size() + 1, 2]))
                optimizer.apply_gradients([(slices, table)])
                rows = [[-1 / hvd.size(), -2 / hvd.size()]] * hvd.size() + [[-3, -4]]
                self.check(table, rows)


class Refusals(Case):
    def test_ops_other_than_average_and_sum(self):
        with self.assertRaisesRegex(ValueError, 'op currently only supports Average and Sum'):
            hvd.DistributedOptimizer(sgd(), op=4)
        if PACKAGE == 'horovod.keras':  # horovod.tensorflow.keras has no hvd.Adasum
            with self.assertRaisesRegex(ValueError, 'op currently only supports'):
                hvd.DistributedOptimizer(sgd(), op=hvd.Adasum)

    def test_predivide_factor_without_average(self):
        with self.assertRaisesRegex(ValueError, 'not supported with op != Average'):
            hvd.DistributedOptimizer(sgd(), op=hvd.Sum, gradient_predivide_factor=2.0)

    def test_wrong_groups(self):
        for groups in (-1, 'two', [1, 2]):
            with self.assertRaisesRegex(ValueError, 'groups should be a non-negative integer'):
                hvd.DistributedOptimizer(sgd(), groups=groups)

    def test_no_passes(self):
        with self.assertRaisesRegex(ValueError, 'backward_passes_per_step must be > 0'):
            hvd.DistributedOptimizer(sgd(), backward_passes_per_step=0)

    def test_two_kinds_of_accumulation(self):
        if not IS_KERAS3:
            self.skipTest('Keras 2 has no gradient_accumulation_steps')
        with self.assertRaisesRegex(ValueError, 'use one of them'):
            hvd.DistributedOptimizer(sgd(gradient_accumulation_steps=2),
                                     backward_passes_per_step=2)

    def test_an_optimizer_that_is_distributed_already(self):
        with self.assertRaisesRegex(ValueError, 'already'):
            hvd.DistributedOptimizer(hvd.DistributedOptimizer(sgd()))

    def test_an_argument_that_is_not_an_optimizer(self):
        with self.assertRaisesRegex(ValueError, "optimizer is 'sgd', .* expected one of Keras"):
            hvd.DistributedOptimizer('sgd')

    def test_a_process_set_that_is_not_registered(self):
        with self.assertRaisesRegex(ValueError, 'has not been registered'):
            hvd.DistributedOptimizer(sgd(), process_set=hvd.ProcessSet([0]))

    def test_a_backend_that_is_not_supported(self):
        class Keras:
            __version__ = '3.15.1'
            ops = None

            class backend:
                @staticmethod
                def backend():
                    return 'jax'

        with self.assertRaisesRegex(ImportError, "'jax'.*tensorflow and torch.*KERAS_BACKEND"):
            _keras.engine(Keras)
