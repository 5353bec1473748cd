# SPDX-License-Identifier: Apache-2.0
"""Facts about the Spark task of this rank."""

import os

from pyspark import TaskContext


def gpu_addresses():
    """Returns the addresses of the GPUs that Spark has given to this task; [] if it gave none."""
    gpus = TaskContext.get().resources().get('gpu')
    return list(gpus.addresses) if gpus else []


def get_available_devices():
    """Returns the numbers of this rank's GPUs among those that it sees, as texts: a rank sees the
    GPUs of all ranks on its node."""
    seen = os.environ.get('CUDA_VISIBLE_DEVICES', '').split(',')
    return [str(seen.index(address)) for address in gpu_addresses()]
