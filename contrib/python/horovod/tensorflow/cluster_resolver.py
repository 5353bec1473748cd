# SPDX-License-Identifier: Apache-2.0
"""Tells tf.distribute where the ranks of the job are."""

import ipaddress
import os
import socket

import tensorflow as tf

from horovod.common.basics import basics
from horovod.common.objects import allgather_object
from horovod.runner import interfaces


class ClusterResolver(tf.distribute.cluster_resolver.SimpleClusterResolver):
    """Replaces TF_CONFIG: each rank of the job is a worker, with the rank's number. Collective.

        hvd.init()
        strategy = tf.distribute.MultiWorkerMirroredStrategy(cluster_resolver=hvd.ClusterResolver())

    Create the strategy before any operation of TensorFlow runs. Each worker uses the GPUs that
    tf.config.set_visible_devices() has left to it. While the resolver exists, the kernel gives
    the port of this worker to no process that asks for any free port.
    """

    def __init__(self):
        self._held = _hold_port()
        place = f'{_own_address()}:{self._held.getsockname()[1]}'
        super().__init__(tf.train.ClusterSpec({'worker': allgather_object(place)}),
                         task_type='worker', task_id=basics.rank(), rpc_layer='grpc')

    def num_accelerators(self, task_type=None, task_id=None, config_proto=None):
        """Returns the number of this worker's GPUs; the arguments have no effect."""
        return {'GPU': len(tf.config.get_visible_devices('GPU'))}


def _hold_port():
    """Returns a socket that is bound to a port but does not listen, so that TensorFlow's server can
    listen there."""
    def bind(port):
        held = socket.socket()
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            held.bind(('', port))
        except OSError:
            held.close()
            raise
        return held

    return interfaces.on_chosen_port(bind)


def _own_address():
    """Returns the address at which the other ranks reach this node: that of the interface which the
    user has chosen, or else of the one that leads to rank 0."""
    chosen = interfaces.chosen_address()
    if chosen:
        return chosen
    if basics.local_size() == basics.size():
        return '127.0.0.1'
    address = _address_towards(os.environ.get('MASTER_ADDR'))
    if address is None or address.is_loopback:
        return socket.gethostname()
    return str(address) if address.version == 4 else f'[{address}]'


def _address_towards(host):
    """Returns this node's address on the route to the host; None if there is none. Sends nothing."""
    try:
        family, kind, _, _, place = socket.getaddrinfo(host, 9, type=socket.SOCK_DGRAM)[0]
        with socket.socket(family, kind) as route:
            route.connect(place)
            return ipaddress.ip_address(route.getsockname()[0].partition('%')[0])
    except OSError:
        return None
