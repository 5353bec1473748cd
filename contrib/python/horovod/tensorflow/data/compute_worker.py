# SPDX-License-Identifier: Apache-2.0
"""A job that provides a tf.data service to trainings:

    hvdrun -np N python -m horovod.tensorflow.data.compute_worker FILE

Each rank is a worker. The job ends when a training calls ``config.compute_client().shutdown()``.
"""

import argparse
import contextlib
import os

import horovod.tensorflow as hvd
from horovod.tensorflow.data.compute_service import TfDataServiceConfig, compute_worker_fn
from horovod.tensorflow.data.registry import Registry


def _forget(configfile, config):
    """Removes the file, unless another service has written a new one."""
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        if TfDataServiceConfig.read(configfile) == config:
            os.unlink(configfile)


def main(dispatchers, dispatcher_side, configfile, timeout):
    """Runs the service; each rank calls this. ``configfile`` exists while the service runs."""
    hvd.init()
    if hvd.size() % dispatchers:
        raise ValueError(f'Number of processes ({hvd.size()}) must be a multiple of number of '
                         f'dispatchers ({dispatchers}).')
    workers = hvd.size() // dispatchers
    with contextlib.ExitStack() as stack:
        config = None
        if hvd.rank() == 0:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(configfile)  # a killed service may have left it for trainings to read
            registry = Registry(dispatchers, workers)
            stack.callback(registry.close)
            config = TfDataServiceConfig(dispatchers, workers, dispatcher_side,
                                         registry.addresses, registry.key, timeout)
            config.write(configfile)
            stack.callback(_forget, configfile, config)
        compute_worker_fn(hvd.broadcast_object(config, name='TfDataServiceConfig'))
        hvd.allgather_object(None)  # keep the registry until all ranks have made their requests


def parse():
    """Returns the command line's arguments."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('configfile', help='file to write: the address and key of the service')
    parser.add_argument('--dispatchers', type=int, default=1,
                        help='1, or one for each rank of the training (%(default)s)')
    parser.add_argument('--dispatcher-side', choices=('compute', 'training'), default='compute',
                        help='job in which dispatchers run (%(default)s)')
    parser.add_argument('--timeout', type=int, default=60,
                        help='seconds to wait for all parts of the service (%(default)s)')
    return parser.parse_args()


if __name__ == '__main__':
    main(**vars(parse()))
