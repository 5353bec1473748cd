# SPDX-License-Identifier: Apache-2.0
"""With HVD_TENSORFLOW_OPS=python: the operations are those in Python, and that is said. To be named
before modules that import horovod.tensorflow, which says it."""

import ctypes
import logging
import os
import unittest.mock


class Heard(logging.Handler):
    """What the logger of the package has said."""

    def __init__(self):
        super().__init__()
        self.records = []

    def emit(self, record):
        self.records.append(record)

    def about(self, text):
        return [each for each in self.records if text in each.getMessage()]


heard = Heard()
logging.getLogger('horovod').addHandler(heard)
logging.getLogger('horovod').setLevel(logging.INFO)

import numpy as np
import tensorflow as tf

import horovod.tensorflow as hvd
from horovod.common import library
from horovod.tensorflow import fallback, native
from horovod.tensorflow.gradients import Reduction
from tf.case import Case, reduced, values


def before(operation):
    """All operations that end before this one begins."""
    found, looked_for = set(), [operation]
    while looked_for:
        each = looked_for.pop()
        for other in [*each.control_inputs, *(tensor.op for tensor in each.inputs)]:
            if other not in found:
                found.add(other)
                looked_for.append(other)
    return found


class Fallback(Case):

    def test_graphs_have_no_operation_of_the_library(self):
        self.assertIsInstance(native.ops, fallback.Operations)
        mine = tf.constant(values(hvd.rank(), (4,)))
        together = tf.function(lambda: hvd.allreduce(mine, op=hvd.Sum))
        self.check(together(), reduced(hvd.Sum, (4,)))
        kinds = {each.type for each in together.get_concrete_function().graph.get_operations()}
        self.assertIn('PyFunc', kinds)
        self.assertFalse([kind for kind in kinds if kind.startswith('Horovod')])

    def test_it_is_said_once_at_level_info_with_the_cause(self):
        for _ in range(3):
            hvd.allreduce([1.0])
        said = heard.about('run as Python code')
        self.assertEqual([each.levelname for each in said], ['INFO'])
        self.assertIn('HVD_TENSORFLOW_OPS=python', said[0].getMessage())

    def test_a_library_that_is_not_there_or_is_none_is_a_cause_too(self):
        for place, cause in (('/nowhere.so', 'there is no hvd_tensorflow.so at /nowhere.so'),
                             (__file__, os.path.basename(__file__))):
            with unittest.mock.patch.dict(os.environ, HVD_TENSORFLOW_OPS='auto'), \
                    unittest.mock.patch.object(native, '_places', lambda: [place]), \
                    self.assertLogs('horovod', 'INFO') as said:
                self.assertIsInstance(native._load()[0], fallback.Operations)
            self.assertEqual(len(said.output), 1)
            self.assertIn(cause, said.output[0])

    def test_a_library_that_does_not_tell_how_its_nodes_wait_is_a_cause_too(self):
        with unittest.mock.patch.dict(os.environ, HVD_TENSORFLOW_OPS='auto'), \
                unittest.mock.patch.object(native, '_places', lambda: [library.PATH]), \
                unittest.mock.patch.object(tf, 'load_op_library'), \
                self.assertLogs('horovod', 'INFO') as said:
            operations, waits = native._load()
        self.assertIsInstance(operations, fallback.Operations)
        self.assertTrue(waits)
        self.assertIn('lacks hvd_tensorflow_nodes_wait', said.output[0])

    def test_the_answer_of_the_library_is_a_bool_and_no_more(self):
        with unittest.mock.patch.object(ctypes, 'CDLL') as opened:
            native._keeps_threads('any.so')
        self.assertIs(opened.return_value.hvd_tensorflow_nodes_wait.restype, ctypes.c_bool)

    def test_another_word_is_refused(self):
        with unittest.mock.patch.dict(os.environ, HVD_TENSORFLOW_OPS='snake'):
            with self.assertRaisesRegex(ValueError, 'HVD_TENSORFLOW_OPS=snake: use python'):
                native._load()


class Turns(Case):
    """Collectives of a session's graph whose order only hvd can make the same on all ranks."""

    def setUp(self):
        if hvd.size() < 2:
            self.skipTest('one rank waits for nobody')

    def run_in_turn(self, make, collectives):
        """The result of what ``make`` returns, in a session with one thread; the graph has so many
        collectives, one after the other."""
        with tf.Graph().as_default() as graph:
            wanted = make()
            nodes = [each for each in graph.get_operations()
                     if each.type == 'PyFunc' and len(each.inputs) > 0]
            earlier = sorted(sum(other in before(each) for other in nodes) for each in nodes)
            self.assertEqual(earlier, list(range(collectives)))
            config = tf.compat.v1.ConfigProto(inter_op_parallelism_threads=1)
            with tf.compat.v1.Session(config=config) as session:
                session.run(tf.compat.v1.global_variables_initializer())
                return session.run(wanted)

    def gradients(self):
        """Three dense ones and two sparse ones."""
        dense = [tf.constant(values(hvd.rank(), (4,), salt=salt)) for salt in range(3)]
        return dense + [tf.IndexedSlices(tf.constant([[salt + 1.0]]), tf.constant([salt]),
                                         tf.constant([2, 1])) for salt in range(2)]

    def test_groups_of_gradients_and_what_is_sparse_in_them(self):
        for groups in (None, 1, 2, 5):
            results = self.run_in_turn(lambda: [tf.convert_to_tensor(each) for each in Reduction(
                op=hvd.Sum, groups=groups)(self.gradients(), [None] * 5)],
                {None: 5, 1: 5, 2: 6, 5: 7}[groups])
            for salt in range(3):
                self.check(results[salt], reduced(hvd.Sum, (4,), salt=salt))
            self.check(results[4], np.float32([[0], [2 * hvd.size()]]))

    def test_steps_of_adasum(self):
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

    def test_gradients_of_a_gathering(self):
        def make():
            mine = tf.constant(values(hvd.rank(), (3,)))
            return tf.gradients(tf.reduce_sum(hvd.allgather(mine)), mine)

        self.check(self.run_in_turn(make, 3)[0], np.ones(3, np.float32))
