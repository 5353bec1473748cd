# SPDX-License-Identifier: Apache-2.0
"""hvd.ClusterResolver tells tf.distribute where the ranks are. Trainings with it:
frameworks_check.py."""

import errno
import os
import socket
import unittest.mock

import horovod.tensorflow as hvd
from tf.case import Case


def places(resolver):
    return [place.rpartition(':') for place in resolver.cluster_spec().as_dict()['worker']]


class Resolver(Case):

    def test_each_rank_is_the_worker_with_its_number(self):
        resolver = hvd.ClusterResolver()
        self.assertEqual((resolver.task_type, resolver.task_id), ('worker', hvd.rank()))
        own = resolver.cluster_spec().task_address('worker', hvd.rank())
        all_own = hvd.allgather_object(own)
        self.assertEqual(resolver.cluster_spec().as_dict(), {'worker': all_own})
        self.assertEqual(len(set(all_own)), hvd.size())

    def test_ranks_of_one_node_meet_on_the_loopback_device(self):
        if hvd.local_size() != hvd.size():
            self.skipTest('the ranks are on several nodes')
        self.assertEqual({host for host, _, _ in places(hvd.ClusterResolver())}, {'127.0.0.1'})

    def test_ranks_of_several_nodes_have_the_addresses_of_their_nodes(self):
        if hvd.local_size() == hvd.size():
            self.skipTest('the ranks are on one node')
        nodes = hvd.allgather_object(socket.gethostname())
        hosts = [host for host, _, _ in places(hvd.ClusterResolver())]
        self.assertEqual(len(set(hosts)), len(set(nodes)))
        self.assertEqual(len(set(zip(hosts, nodes))), len(set(nodes)))
        self.assertIn(os.environ['MASTER_ADDR'], hosts)

    def test_the_interface_of_the_user_is_used(self):
        with unittest.mock.patch.dict(os.environ, HVD_IFACE='lo'):
            hosts = {host for host, _, _ in places(hvd.ClusterResolver())}
        self.assertEqual(hosts, {'127.0.0.1'})

    def test_the_port_is_kept_for_a_server_of_this_rank(self):
        resolver = hvd.ClusterResolver()
        port = int(places(resolver)[hvd.rank()][2])
        with socket.socket() as other, self.assertRaises(OSError) as raised:
            other.bind(('', port))
        self.assertEqual(raised.exception.errno, errno.EADDRINUSE)
        with socket.create_server(('', port)):
            pass

    def test_the_range_of_ports_is_respected(self):
        wanted = range(61200, 61264)
        with unittest.mock.patch.dict(os.environ, HVD_PORT_RANGE='61200-61263'):
            self.assertIn(int(places(hvd.ClusterResolver())[hvd.rank()][2]), wanted)

    def test_without_gpus_a_worker_has_none(self):
        self.assertEqual(hvd.ClusterResolver().num_accelerators(), {'GPU': 0})
