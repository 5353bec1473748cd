# SPDX-License-Identifier: Apache-2.0
"""Starts JAX's own collectives on the ranks of the job."""

import os
import socket
import sys
import threading

import jax

from horovod.common.basics import basics
from horovod.common.objects import broadcast_object

_PATIENCE_S = 5  # for ranks that end at the same time, because one of them has failed
_held = []  # the socket that keeps rank 0's port


def _reserve_port():
    """Binds a free port and returns its number. The socket stays open without listening, so no
    other program gets the port; JAX's coordinator binds it too, with the same option."""
    family = socket.AF_INET6 if socket.has_dualstack_ipv6() else socket.AF_INET
    reserved = socket.socket(family, socket.SOCK_STREAM)
    _held.append(reserved)
    reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    reserved.bind(('', 0))
    return reserved.getsockname()[1]


def _coordinator():
    """Returns HOST:PORT for the coordinator, on rank 0. The plugin of Slurm has chosen it."""
    chosen = os.environ.get('JAX_COORDINATOR_ADDRESS')
    if chosen:
        return chosen
    is_one_node = basics.local_size() == basics.size()
    host = '127.0.0.1' if is_one_node else os.environ.get('MASTER_ADDR') or socket.gethostname()
    return f'{host}:{_reserve_port()}'


def initialize(**options):
    """Calls jax.distributed.initialize() with the ranks of hvd, under every launcher. Call it after
    hvd.init() and before JAX computes anything; collective.

    options: for jax.distributed.initialize(). The default of local_device_ids is the device with
        the index hvd.local_rank().
    """
    address = broadcast_object(_coordinator() if basics.rank() == 0 else None, 0,
                               'jax.coordinator')
    settings = {'coordinator_address': address, 'num_processes': basics.size(),
                'process_id': basics.rank(), 'local_device_ids': [basics.local_rank()]}
    jax.distributed.initialize(**{**settings, **options})


def leave_soon():
    """Ends JAX's own collectives in a process that an exception ends. jax.distributed.shutdown()
    waits up to five minutes until all ranks have called it, which a dead rank never does: without
    them the process exits at once."""
    if not jax.distributed.is_initialized():
        return
    ending = threading.Thread(target=jax.distributed.shutdown, daemon=True)
    ending.start()
    ending.join(_PATIENCE_S)
    if ending.is_alive():
        print(f'hvd: jax.distributed.shutdown() has waited {_PATIENCE_S} s for other ranks: the '
              'process exits without it', file=sys.stderr)
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(1)
