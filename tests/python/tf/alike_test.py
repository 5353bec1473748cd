# SPDX-License-Identifier: Apache-2.0
"""The warning that ranks train different variables: it comes if the script forgets to broadcast them, once, on one
rank, in eager mode and in graphs, and in no other case."""

import os
import unittest.mock
import warnings

import numpy as np
import tensorflow as tf

import horovod.tensorflow as hvd
from tf.case import Case

PARTS = 'started from different parameters'


def make_variables(seed):
    random = np.random.RandomState(seed)
    return [tf.Variable(random.randn(*shape), dtype=tf.float32) for shape in ((5, 3), (3,), ())]


def loss_of(variables):
    return tf.add_n([tf.reduce_sum(tf.square(each)) for each in variables])


class Alike(Case):

    def warned(self, variables, compiled, steps=12, after_first=lambda: None):
        """Trains with a new tape in each step; returns how often this rank has warned."""
        def step():
            with tf.GradientTape() as tape:
                loss = loss_of(variables)
            gradients = hvd.DistributedGradientTape(tape).gradient(loss, variables)
            for variable, gradient in zip(variables, gradients):
                variable.assign_sub(0.01 * gradient)

        run = tf.function(step) if compiled else step
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter('always')
            for number in range(steps):
                run()
                if number == 0:
                    after_first()
        found = [str(each.message) for each in caught if PARTS in str(each.message)]
        for each in found:
            self.assertIn('hvd.broadcast_variables(model.variables, root_rank=0)', each)
            self.assertIn('BroadcastGlobalVariablesCallback(0)', each)
        return len(found)

    def check_warned(self, count, seed, **options):
        expected = count if hvd.rank() == 0 and hvd.size() > 1 else 0
        for compiled in (False, True):
            variables = make_variables(seed)
            after = options.pop('after_first', None)
            more = {} if after is None else {'after_first': lambda: after(variables)}
            self.assertEqual(self.warned(variables, compiled, **more, **options), expected, compiled)
            if after is not None:
                options['after_first'] = after

    def test_a_forgotten_broadcast_causes_one_warning(self):
        self.check_warned(1, seed=hvd.rank())

    def test_equal_variables_cause_none(self):
        self.check_warned(0, seed=1)

    def test_a_broadcast_may_follow_the_first_step(self):
        self.check_warned(0, seed=hvd.rank(), after_first=lambda variables: hvd.broadcast_variables(variables, 0))

    def test_a_variable_of_the_environment_turns_it_off(self):
        off = {'HVD_CHECK_PARAMETERS': '0'} if hvd.rank() == 0 else {}
        with unittest.mock.patch.dict(os.environ, off):
            self.check_warned(0, seed=hvd.rank())

    def test_gradients_of_other_tensors_are_not_compared(self):
        for _ in range(12):
            x = tf.constant([1.0 + hvd.rank()])
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = x * x
            hvd.DistributedGradientTape(tape).gradient(y, [x])

    def test_variables_of_a_rank_alone_do_not_matter(self):
        if hvd.rank() == 0:
            make_variables(1)
        variables = make_variables(2)
        self.assertEqual(self.warned(variables, True), 0)

    def test_several_passes_are_one_step(self):
        variables = make_variables(hvd.rank())
        optimizer = hvd.DistributedOptimizer(
            tf.keras.optimizers.SGD(0.01), backward_passes_per_step=2)

        @tf.function
        def step():
            with tf.GradientTape() as tape:
                loss = loss_of(variables)
            optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))

        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter('always')
            for _ in range(24):
                step()
        found = [each for each in caught if PARTS in str(each.message)]
        self.assertEqual(len(found), int(hvd.rank() == 0 and hvd.size() > 1))
