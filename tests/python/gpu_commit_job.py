# SPDX-License-Identifier: Apache-2.0
"""A job of two ranks on stand-ins for GPUs: gpu_commit_job.py FILE. Rank 1 dies in a collective
while rank 0's stream waits for it. Rank 0 then commits, and prints the saved values and the result
of the collective."""

import ctypes
import os
import signal
import sys
import time

import horovod.torch as hvd
from gpu_test import Double, GpuTest
from horovod.common.elastic import ValuesState
from horovod.common.exceptions import HorovodInternalError


class Weights:
    """Saves the values of a tensor, for an elastic state."""

    def __init__(self, tensor):
        self._tensor = tensor
        self.saved = None

    def save(self):
        self.saved = self._tensor.tolist()


class WeightsState(ValuesState):

    def __init__(self, tensor):
        self._values = self.weights = Weights(tensor)
        super().__init__(hvd.broadcast_object, hvd.rank)


def die_when_launched(path):
    """Starts a collective that this rank's blocked stream never runs, and kills this rank when the
    other rank has launched the collective and created the file ``path``."""
    cuda, libc = ctypes.CDLL('libcuda.so.1'), ctypes.CDLL(None)
    cuda.fake_gpu_enqueue(Double.stream, libc.pause, None)
    hvd.synchronize(hvd.allreduce_async_(Double([3], [0, 0, 0]), name='weights', op=hvd.Sum))
    while not os.path.exists(path):
        time.sleep(0.01)
    os.kill(os.getpid(), signal.SIGKILL)


def commit_after(path, tensor, state):
    hvd.synchronize(hvd.allreduce_async_(tensor, name='weights', op=hvd.Sum))
    print('launched', flush=True)
    with open(path, 'w'):
        pass
    try:
        state.commit()
        print('committed')
    except HorovodInternalError as failure:
        print('not committed:', failure)
    print('saved', state.weights.saved)
    print('left', tensor.tolist(), flush=True)


def main():
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # so that rank 0 can print after rank 1's death
    GpuTest.setUpClass()
    tensor = Double([3], [1, 2, 3])
    state = WeightsState(tensor)
    hvd.synchronize(hvd.allreduce_async_(tensor, name='weights', op=hvd.Sum))
    state.commit()
    if hvd.rank() == 1:
        die_when_launched(sys.argv[1])
    commit_after(sys.argv[1], tensor, state)
    os._exit(3)  # without shutdown, which this test does not cover


if __name__ == '__main__':
    main()
