# SPDX-License-Identifier: Apache-2.0
"""hvd_tensorflow.so finds the device of a kernel in the real TensorFlow. How it finds the stream of
a GPU from the device is tested on stand-ins only."""

import os

import tensorflow as tf

from tf.case import Case, array, in_both_modes


class Device(Case):

    def test_kernels_find_the_device_that_runs_them(self):
        probe = tf.load_op_library(os.environ['HVD_TEST_DEVICE_PROBE'])
        for result in in_both_modes(probe.horovod_test_device):
            self.assertEqual(array(result), 1)
