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

import tensorflow as tf

import horovod.tensorflow as hvd
from horovod.common import library
from horovod.tensorflow import fallback, native
from tf.case import Case, reduced, values


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
