# SPDX-License-Identifier: Apache-2.0
"""The library of TensorFlow's operations: errors if it is missing or does not fit, and the order of
collectives in the graphs of TensorFlow before 2.13, whose nodes occupy a thread while they
wait."""

import ctypes
import unittest.mock

import numpy as np
import tensorflow as tf

import horovod.tensorflow as hvd
from horovod.common import library
from horovod.tensorflow import gradients, native
from horovod.tensorflow.collectives import nodes
from horovod.tensorflow.gradients import Reduction
from tf.case import Case, reduced, values


def before(operation):
    """Returns all operations that must end before this one begins."""
    found, looked_for = set(), [operation]
    while looked_for:
        each = looked_for.pop()
        for other in [*each.control_inputs, *(tensor.op for tensor in each.inputs)]:
            if other not in found:
                found.add(other)
                looked_for.append(other)
    return found


class Library(Case):

    def check_refused(self, place, *texts):
        with unittest.mock.patch.object(native, 'companion', lambda *_: place), \
                self.assertRaises(ImportError) as raised:
            native._load()
        for text in (place, tf.__version__, 'meson install', *texts):
            self.assertIn(text, str(raised.exception))

    def test_an_absent_library_is_an_import_error_with_the_remedy(self):
        with unittest.mock.patch('os.path.exists', lambda path: False), \
                self.assertRaisesRegex(ImportError, 'there is no hvd_tensorflow.so.*meson install'):
            native._load()

    def test_a_file_that_is_no_library_is_an_import_error_with_the_reason(self):
        self.check_refused(__file__, 'invalid ELF header')

    def test_a_library_without_the_operations_is_an_import_error(self):
        self.check_refused(library.PATH, 'does not find the C interface')

    def test_a_library_of_another_version_is_an_import_error(self):
        with unittest.mock.patch.object(tf, 'load_op_library'):
            self.check_refused(library.PATH, 'no function hvd_tensorflow_nodes_wait')

    def test_the_answer_of_the_library_is_a_bool_and_no_more(self):
        with unittest.mock.patch.object(ctypes, 'CDLL') as opened:
            native._functions('any.so')
        self.assertIs(opened.return_value.hvd_tensorflow_nodes_wait.restype, ctypes.c_bool)


class Turns(Case):
    """Collectives in the graph of a session, which hvd must run in the same order on all ranks."""

    def setUp(self):
        if hvd.size() < 2:
            self.skipTest('one rank waits for nobody')
        for module in (gradients, nodes):
            patch = unittest.mock.patch.object(module, 'nodes_wait', True)
            patch.start()
            self.addCleanup(patch.stop)

    def run_in_turn(self, make, collectives):
        """Runs the operation that ``make`` returns in a session with one thread, and returns its
        result. Checks that the graph has this number of collectives, one after the other."""
        with tf.Graph().as_default() as graph:
            wanted = make()
            ours = [each for each in graph.get_operations()
                    if each.type.startswith('Horovod') and len(each.inputs) > 0]
            earlier = sorted(sum(other in before(each) for other in ours) for each in ours)
            self.assertEqual(earlier, list(range(collectives)))
            config = tf.compat.v1.ConfigProto(inter_op_parallelism_threads=1)
            with tf.compat.v1.Session(config=config) as session:
                session.run(tf.compat.v1.global_variables_initializer())
                return session.run(wanted)

    def gradients(self):
        """Returns three dense and two sparse gradients."""
        dense = [tf.constant(values(hvd.rank(), (4,), salt=salt)) for salt in range(3)]
        return dense + [tf.IndexedSlices(tf.constant([[salt + 1.0]]), tf.constant([salt]),
                                         tf.constant([2, 1])) for salt in range(2)]

    def test_groups_with_sparse_gradients_run_in_one_order(self):
        for groups in (None, 1, 2, 5):
            results = self.run_in_turn(lambda: [tf.convert_to_tensor(each) for each in Reduction(
                op=hvd.Sum, groups=groups)(self.gradients(), [None] * 5)],
                {None: 5, 1: 5, 2: 6, 5: 7}[groups])
            for salt in range(3):
                self.check(results[salt], reduced(hvd.Sum, (4,), salt=salt))
            self.check(results[4], np.float32([[0], [2 * hvd.size()]]))

    def test_steps_of_adasum_run_in_one_order(self):
        def make():
            variables = [tf.compat.v1.get_variable(name, initializer=np.float32([1, 2]))
                         for name in 'abc']
            optimizer = hvd.DistributedOptimizer(
                tf.compat.v1.train.GradientDescentOptimizer(0.5), op=hvd.Adasum)
            step = optimizer.minimize(tf.reduce_sum(tf.stack(variables)), var_list=variables)
            with tf.control_dependencies([step]):
                return [each.read_value() for each in variables]

        if hvd.size() & (hvd.size() - 1):
            self.skipTest('Adasum needs a power of two of ranks')
        for each in self.run_in_turn(make, 3):
            self.check(each, np.float32([0.5, 1.5]))

    def test_gradients_of_allgather_run_in_one_order(self):
        def make():
            mine = tf.constant(values(hvd.rank(), (3,)))
            return tf.gradients(tf.reduce_sum(hvd.allgather(mine)), mine)

        self.check(self.run_in_turn(make, 3)[0], np.ones(3, np.float32))
