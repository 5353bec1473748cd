# SPDX-License-Identifier: Apache-2.0
"""init, shutdown and ranks with TensorFlow, and queries that only this front end has."""

import horovod.tensorflow as hvd
from basics_cases import Basics
from tf.case import Case


class OfTensorFlow(Basics, Case):
    hvd = hvd

    def test_a_job_on_one_node_is_homogeneous(self):
        self.assertIs(hvd.is_homogeneous(), True)

    def test_powers_of_2_are_recognised_for_adasum(self):
        self.assertEqual([number for number in range(10) if hvd.check_num_rank_power_of_2(number)],
                         [1, 2, 4, 8])
