# SPDX-License-Identifier: Apache-2.0
"""What holds for every optimizer holds with its gradients in shared memory, too."""

import os
import unittest.mock

import optimizer_test
import optimizers_test
import scaler_test
from horovod.torch.shared_gradients import VARIABLE


class InSharedMemory:
    """To be mixed with a TestCase."""

    def setUp(self):
        super().setUp()
        patch = unittest.mock.patch.dict(os.environ, {VARIABLE: '1'})
        patch.start()
        self.addCleanup(patch.stop)


class SharedOptimizer(InSharedMemory, optimizer_test.Optimizer):
    pass


class SharedOptimizers(InSharedMemory, optimizers_test.Optimizers):
    pass


class SharedScaler(InSharedMemory, scaler_test.Scaler):
    pass
