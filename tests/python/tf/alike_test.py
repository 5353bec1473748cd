# SPDX-License-Identifier: Apache-2.0
"""The warning that ranks train different variables: it comes if the script forgets to broadcast them, once, on one
rank, in eager mode and in graphs, and in no other case. It names the line of the script that reduces the gradients. It
makes no rank wait, and leaves programs as they are."""

import itertools
import linecache
import os
import tempfile
import unittest.mock
import warnings

import numpy as np
import tensorflow as tf

import horovod.tensorflow as hvd
from tf.case import Case

PARTS = 'started from different parameters'
_rows = itertools.count(2)  # a job compares variables of the same sizes once


def make_variables(seed, rows=None):
    random = np.random.RandomState(seed)
    shape = (next(_rows) if rows is None else rows, 3)
    return [tf.Variable(random.randn(*each), dtype=tf.float32) for each in (shape, (3,), ())]


def loss_of(variables):
    return tf.add_n([tf.reduce_sum(tf.square(each)) for each in variables])


def step_of(variables, **settings):
    """Returns a function that takes one step, with a new tape."""
    def step():
        with tf.GradientTape() as tape:
            loss = loss_of(variables)
        gradients = hvd.DistributedGradientTape(tape, **settings).gradient(loss, variables)
        for variable, gradient in zip(variables, gradients):
            variable.assign_sub(0.01 * gradient)
    return step


def settle(process_set):
    """Returns when all that the ranks of the set started earlier has ended: the second allreduce begins after the first
    has ended, and the first is agreed on no earlier than what was started before it."""
    for turn in range(2):
        hvd.allreduce(tf.zeros(1), name=f'settle.{turn}', process_set=process_set)


class Alike(Case):

    @classmethod
    def setUpClass(cls):
        hvd.shutdown()
        with unittest.mock.patch.dict(os.environ, {'HOROVOD_DYNAMIC_PROCESS_SETS': '1'}):
            hvd.init()

    def warned(self, run, steps=12, process_set=hvd.global_process_set):
        """Runs the steps; returns how often this rank has warned. A step reads the result of a comparison if there is
        one, and these steps take less time than a comparison. So the ranks of the set wait for each other before the
        last step; with None, they do not."""
        with warnings.catch_warnings(record=True) as caught, \
                unittest.mock.patch.object(tf.get_logger(), 'warning') as log:
            warnings.simplefilter('always')
            for number in range(steps):
                if number == steps - 1 and process_set is not None:
                    settle(process_set)
                run(number)
        self.assertEqual([each for each in log.call_args_list if 'AutoGraph' in str(each)], [])
        found = [each for each in caught if PARTS in str(each.message)]
        for each in found:
            self.assertIn('hvd.broadcast_variables(model.variables, root_rank=0)', str(each.message))
            self.assertIn('BroadcastGlobalVariablesCallback(0)', str(each.message))
            self.assertEqual(each.filename, __file__)
            self.assertRegex(linecache.getline(each.filename, each.lineno),
                             r'^ *(gradients = hvd\.DistributedGradientTape|optimizer\.apply_gradients)\(')
        return len(found)

    def check_warned(self, count, seed, after=lambda number, variables: None, **settings):
        """Trains variables of this seed in both modes. ``count``: the warnings of rank 0."""
        for compiled in (False, True):
            variables = make_variables(seed)
            step = step_of(variables, **settings)
            step = tf.function(step) if compiled else step
            expected = count if hvd.rank() == 0 and hvd.size() > 1 else 0
            self.assertEqual(self.warned(lambda number: (step(), after(number, variables))), expected, compiled)

    def test_a_forgotten_broadcast_causes_one_warning(self):
        self.check_warned(1, hvd.rank())

    def test_groups_and_fp16_are_compared_too(self):
        self.check_warned(1, hvd.rank(), groups=2, compression=hvd.Compression.fp16)

    def test_equal_variables_cause_none(self):
        self.check_warned(0, 1)

    def test_differences_of_rounding_cause_none(self):
        def round_up(number, variables):
            variables[0].assign(variables[0] * (1 + 1e-7 * hvd.rank()))

        self.check_warned(0, 1, round_up)

    def test_a_broadcast_may_follow_the_first_step(self):
        def broadcast(number, variables):
            if number == 0:
                hvd.broadcast_variables(variables, 0)

        self.check_warned(0, hvd.rank(), broadcast)

    def test_a_variable_of_the_environment_turns_it_off(self):
        off = {'HVD_CHECK_PARAMETERS': '0'} if hvd.rank() == hvd.size() - 1 else {}
        with unittest.mock.patch.dict(os.environ, off):
            self.check_warned(0, hvd.rank())

    def test_gradients_of_other_tensors_are_not_compared(self):
        def run(number):
            x = tf.constant([1.0 + hvd.rank()])
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = x * x
            hvd.DistributedGradientTape(tape).gradient(y, [x])

        self.assertEqual(self.warned(run), 0)

    def test_each_of_two_models_is_compared(self):
        first, second = (make_variables(hvd.rank()) for _ in range(2))
        one, other = tf.function(step_of(first)), tf.function(step_of(second))

        def both(number):
            one()
            other()

        self.assertEqual(self.warned(both), 2 if hvd.rank() == 0 and hvd.size() > 1 else 0)

    def test_a_rank_may_trace_again(self):
        variables = make_variables(hvd.rank())

        @tf.function
        def step(rows):
            with tf.GradientTape() as tape:
                loss = loss_of(variables) * tf.reduce_mean(rows)
            gradients = hvd.DistributedGradientTape(tape).gradient(loss, variables)
            for variable, gradient in zip(variables, gradients):
                variable.assign_sub(0.01 * gradient)

        count = self.warned(lambda number: step(tf.ones(number + 2 if hvd.rank() == 0 else 2)))
        self.assertEqual(count, int(hvd.rank() == 0 and hvd.size() > 1))

    def test_a_rank_may_fail_before_its_gradients_and_go_on(self):
        """A data set that is read within the function raises such an error at its end."""
        variables, step = make_variables(hvd.rank()), None

        @tf.function
        def step(x):
            with tf.GradientTape() as tape:
                with tf.control_dependencies([tf.debugging.assert_positive(x)]):
                    loss = loss_of(variables) * x
            gradients = hvd.DistributedGradientTape(tape).gradient(loss, variables)
            for variable, gradient in zip(variables, gradients):
                variable.assign_sub(0.01 * gradient)

        def run(number):
            if number % 3 == hvd.rank() % 3:
                with self.assertRaises(tf.errors.InvalidArgumentError):
                    step(tf.constant(-1.0))
            step(tf.constant(1.0))

        self.assertEqual(self.warned(run), int(hvd.rank() == 0 and hvd.size() > 1))

    def test_a_set_compares_its_own_ranks(self):
        if hvd.size() < 3:
            self.skipTest('needs a rank outside of a set of two')
        members = hvd.add_process_set([1, 2])
        for compiled in (False, True):
            variables = make_variables(hvd.rank())
            step = step_of(variables, process_set=members)
            step = tf.function(step) if compiled else step
            count = self.warned(lambda number: step(), process_set=members) if members.included() else 0
            self.assertEqual(count, int(hvd.rank() == 1))
        hvd.remove_process_set(members)

    def test_the_next_set_begins_anew(self):
        """Ranks outside of the first set have taken no step of these variables."""
        if hvd.size() < 3:
            self.skipTest('needs a rank outside of a set of two')
        rows = next(_rows)
        for ranks in ([0, 1], [1, 2]):
            members = hvd.add_process_set(ranks)
            step = step_of(make_variables(hvd.rank(), rows), process_set=members)
            count = self.warned(lambda number: step(), process_set=members) if members.included() else 0
            self.assertEqual(count, int(hvd.rank() == ranks[0]))
            hvd.remove_process_set(members)

    def test_several_passes_are_one_step(self):
        variables = make_variables(hvd.rank())
        optimizer = hvd.DistributedOptimizer(tf.keras.optimizers.SGD(0.01), backward_passes_per_step=2)

        @tf.function
        def step():
            with tf.GradientTape() as tape:
                loss = loss_of(variables)
            optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))

        self.assertEqual(self.warned(lambda number: step(), 24), int(hvd.rank() == 0 and hvd.size() > 1))

    def test_a_module_with_a_compiled_step_can_be_saved_and_trained_on(self):
        class Module(tf.Module):
            def __init__(self, variables):
                super().__init__()
                self.all = variables
                self.step = tf.function(step_of(variables), input_signature=[])

        module = Module(make_variables(hvd.rank()))
        with tempfile.TemporaryDirectory() as place:
            tf.saved_model.save(module, place)
            loaded = tf.saved_model.load(place)
        self.assertEqual(self.warned(lambda number: loaded.step()), int(hvd.rank() == 0 and hvd.size() > 1))

    def test_z_a_rank_that_has_joined_ends_the_comparisons(self):
        rows = next(_rows)
        step = step_of(make_variables(hvd.rank(), rows))
        self.assertEqual(self.warned(lambda number: step(), 4 + 4 * hvd.rank(), process_set=None), 0)
        hvd.join()
        self.assertEqual(self.warned(lambda number: step(), 12), 0)

    def test_z_the_next_job_begins_anew(self):
        rows = next(_rows)
        step = step_of(make_variables(hvd.rank(), rows))
        for _ in range(5):
            step()
        hvd.shutdown()
        hvd.init()
        self.assertEqual(self.warned(lambda number: step(), 9), 0)
        self.assertEqual(self.warned(lambda number: step(), 3), int(hvd.rank() == 0 and hvd.size() > 1))
