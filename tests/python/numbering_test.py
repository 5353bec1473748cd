# SPDX-License-Identifier: Apache-2.0
"""How ranks in Ray and Spark are numbered, and the stores by which ranks find each other."""

import datetime
import os
import tempfile
import threading
import unittest

from horovod.common.file_store import FileStore
from horovod.runner import interfaces, numbering
from horovod.runner.rank_store import RankStore, StoreServer


class Numbering(unittest.TestCase):

    def test_nodes_are_kept_together_in_the_order_of_their_first_rank(self):
        self.assertEqual(numbering.adjacent('babca'), [0, 2, 1, 4, 3])
        self.assertEqual(numbering.adjacent([]), [])

    def test_ranks_count_on_their_node_and_across_nodes(self):
        numbers = numbering.variables('aabcaab')
        names = ('RANK', 'LOCAL_RANK', 'LOCAL_SIZE', 'CROSS_RANK', 'CROSS_SIZE')
        self.assertEqual([tuple(int(each[f'HOROVOD_{name}']) for name in names) for each in numbers],
                         [(0, 0, 4, 0, 3), (1, 1, 4, 0, 2), (2, 0, 2, 1, 3), (3, 0, 1, 2, 3),
                          (4, 2, 4, 0, 1), (5, 3, 4, 0, 1), (6, 1, 2, 1, 2)])
        self.assertEqual({each['HOROVOD_SIZE'] for each in numbers}, {'7'})

    def test_a_rank_sees_the_gpus_of_its_node_in_the_order_of_local_ranks(self):
        self.assertEqual(numbering.visible_gpus('abab', [[3], [0], [1], ['GPU-5']]),
                         ['3,1', '0,GPU-5', '3,1', '0,GPU-5'])
        self.assertEqual(numbering.visible_gpus('aaa', [[0], [0], [1]]), ['0,1'] * 3)

    def test_this_node_is_known_by_its_name_and_boot(self):
        self.assertRegex(numbering.this_node(), r'^\S+ [0-9a-f-]{36}$')


class Interfaces(unittest.TestCase):

    def test_names_come_as_text_in_a_list_or_in_a_set(self):
        for given, names in (('b', ['b']), (['b', 'a'], ['b', 'a']), ({'b', 'a', 'c'}, ['a', 'b', 'c']), (None, [])):
            self.assertEqual(interfaces.listed(given), names)

    def test_the_first_interface_that_exists_is_used(self):
        self.assertEqual(interfaces.first_address(['none0', 'lo', 'none1']), '127.0.0.1')
        with self.assertRaisesRegex(ValueError, "'none1' has no IPv4 address"):
            interfaces.first_address(['none0', 'none1'])


class Store(unittest.TestCase):

    def setUp(self):
        self.server = StoreServer('127.0.0.1')
        self.server.start()
        self.addCleanup(self.server.stop)
        self.store = RankStore(('127.0.0.1', self.server.port), self.server.key)

    def test_values_and_counters_are_kept(self):
        self.store.set('a', b'\0one')
        self.assertEqual(self.store.get('a'), b'\0one')
        self.assertEqual([self.store.add('n', 1), self.store.add('n', 4)], [1, 5])
        with self.assertRaises(KeyError):
            self.store.get('b')

    def test_a_wait_ends_with_the_value_or_the_time(self):
        with self.assertRaisesRegex(RuntimeError, 'timed out.*late'):
            self.store.wait(['late'], datetime.timedelta(milliseconds=20))
        thread = threading.Thread(target=self.store.wait,
                                  args=(['late'], datetime.timedelta(seconds=100)))
        thread.start()
        self.store.set('late', b'')
        thread.join()

    def test_a_folder_stays_the_one_that_was_checked(self):
        with tempfile.TemporaryDirectory(prefix='hvd-test-') as folder:
            place, moved = os.path.join(folder, 'store'), os.path.join(folder, 'moved')
            store = FileStore(place)
            os.rename(place, moved)
            os.mkdir(place)
            self.assertFalse(store.check(['a/b']))
            store.set('a/b', b'one')
            self.assertEqual((store.check(['a/b']), store.get('a/b')), (True, b'one'))
            self.assertEqual([store.add('n', 1), store.add('n', 4)], [1, 5])
            self.assertEqual((os.listdir(place), sorted(os.listdir(moved))), ([], ['a_b', 'n']))

    def test_a_stranger_without_the_key_is_rejected(self):
        stranger = RankStore(('127.0.0.1', self.server.port), bytes(32))
        with self.assertRaises((EOFError, OSError)):
            stranger.set('a', b'')
