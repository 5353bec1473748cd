# SPDX-License-Identifier: Apache-2.0
"""The life of the job with TensorFlow, and the few facts that only this front end tells."""

import horovod.tensorflow as hvd
from basics_cases import Basics
from tf.case import Case


class OfTensorFlow(Basics, Case):
    hvd = hvd

    def test_nodes_that_are_one_are_alike(self):
        self.assertIs(hvd.is_homogeneous(), True)

    def test_adasum_asks_for_powers_of_2(self):
        self.assertEqual([number for number in range(10) if hvd.check_num_rank_power_of_2(number)],
                         [1, 2, 4, 8])
