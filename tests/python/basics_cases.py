# SPDX-License-Identifier: Apache-2.0
"""Tests that all front ends share: init and shutdown, ranks, process sets, the timeline. A test
class mixes them with a TestCase that has ``hvd``, the module of the front end."""

import importlib.util
import json
import os
import shutil
import signal
import tempfile
import time
import unittest.mock

from horovod.common.objects import allgather_object, broadcast_object


class Basics:
    hvd = None

    def setUp(self):
        self.hvd.init()

    def begin_again(self, **options):
        """Calls shutdown() together with all ranks, and then init() with these options."""
        if self.hvd.is_initialized():
            allgather_object(None)
            self.hvd.shutdown()
        self.hvd.init(**options)

    def in_environment(self, **variables):
        """Sets environment variables for this test. At its end they are reset, and init() is called
        again."""
        self.addCleanup(self.begin_again)
        patch = unittest.mock.patch.dict(os.environ, variables)
        patch.start()
        self.addCleanup(patch.stop)

    def test_ranks_and_sizes_are_consistent(self):
        hvd = self.hvd
        pairs = allgather_object((hvd.rank(), hvd.size(), hvd.local_rank(), hvd.local_size(),
                                  hvd.cross_rank(), hvd.cross_size()))
        self.assertEqual([pair[0] for pair in pairs], list(range(hvd.size())))
        self.assertEqual({pair[1] for pair in pairs}, {hvd.size()})
        places = {(pair[2], pair[4]) for pair in pairs}
        self.assertEqual(len(places), hvd.size())
        for _, _, local_rank, local_size, cross_rank, cross_size in pairs:
            self.assertLess(local_rank, local_size)
            self.assertLess(cross_rank, cross_size)

    def test_the_size_is_that_of_the_launcher(self):
        self.assertEqual(self.hvd.size(), int(os.environ.get('HVD_TEST_RANKS', 1)))

    def test_second_init_does_nothing(self):
        rank = self.hvd.rank()
        self.hvd.init()
        self.assertEqual(self.hvd.rank(), rank)

    def test_init_works_again_after_shutdown(self):
        for _ in range(3):
            before = self.hvd.rank()
            allgather_object(None)
            self.hvd.shutdown()
            self.assertFalse(self.hvd.is_initialized())
            with self.assertRaisesRegex(ValueError, 'has not been initialized; use hvd.init'):
                self.hvd.rank()
            self.hvd.init()
            self.assertTrue(self.hvd.is_initialized())
            self.assertEqual(self.hvd.rank(), before)
            self.assertEqual(allgather_object(before), list(range(self.hvd.size())))

    def test_gloo_is_the_only_transport_that_is_enabled(self):
        hvd = self.hvd
        for built in (hvd.mpi_enabled, hvd.ddl_built, hvd.ccl_built, hvd.rocm_built):
            self.assertIs(built(), False)
        self.assertIs(hvd.gloo_built(), True)
        self.assertIs(hvd.gloo_enabled(), True)
        self.assertIs(hvd.mpi_built(), importlib.util.find_spec('mpi4py') is not None)
        with self.assertRaisesRegex(ValueError, 'Horovod MPI is not enabled'):
            hvd.mpi_threads_supported()

    def test_nccl_needs_cuda(self):
        self.assertIs(type(self.hvd.cuda_built()), bool)
        self.assertTrue(self.hvd.cuda_built() or self.hvd.nccl_built() == 0)

    def test_global_process_set_has_all_ranks(self):
        everyone = self.hvd.global_process_set
        self.assertEqual(everyone.process_set_id, 0)
        self.assertEqual(everyone.ranks, list(range(self.hvd.size())))
        self.assertIsNone(everyone.mpi_comm)
        self.assertEqual((everyone.size(), everyone.rank()), (self.hvd.size(), self.hvd.rank()))
        self.assertTrue(everyone.included())
        self.assertFalse(self.hvd.remove_process_set(everyone))

    def test_process_sets_can_be_added_and_removed(self):
        if self.hvd.size() < 2:
            self.skipTest('a set of all ranks is there already')
        self.in_environment()
        self.begin_again(process_sets='dynamic')
        alone = self.hvd.add_process_set(self.hvd.ProcessSet([0]))
        self.assertEqual((alone.process_set_id, alone.ranks, alone.size()), (1, [0], 1))
        self.assertIs(alone.included(), self.hvd.rank() == 0)
        self.assertTrue(self.hvd.remove_process_set(alone))
        self.assertIsNone(alone.process_set_id)
        if hasattr(self.hvd, 'mpi_ops'):
            self.assertEqual(self.hvd.mpi_ops._basics._get_process_set_ids_and_ranks(),
                             {0: list(range(self.hvd.size()))})

    def test_the_timeline_has_what_happened_between_start_and_stop(self):
        directory = tempfile.mkdtemp(prefix='hvd-test-') if self.hvd.rank() == 0 else None
        if directory is not None:
            self.addCleanup(shutil.rmtree, directory)
        path = os.path.join(broadcast_object(directory), 'timeline')
        self.in_environment(HOROVOD_TIMELINE='DYNAMIC')
        self.begin_again()
        self.hvd.start_timeline(path)
        allgather_object(None, 'recorded')
        self.hvd.stop_timeline()
        allgather_object(None)  # wait until rank 0, which writes the file, has stopped
        if self.hvd.rank() == 0:
            with open(path) as stream:
                self.assertIn('recorded', json.dumps(json.load(stream)))

    def test_the_report_has_the_time_of_each_rank_in_sections(self):
        hvd = self.hvd
        directory = tempfile.mkdtemp(prefix='hvd-test-') if hvd.rank() == 0 else None
        if directory is not None:
            self.addCleanup(shutil.rmtree, directory)
        path = os.path.join(broadcast_object(directory), 'report.json')
        self.in_environment(HVD_REPORT=path)
        self.begin_again()
        with self.assertRaises(KeyError):
            with hvd.section('epoch'), hvd.section('\u00e9' * 16):  # is cut to 15 letters
                time.sleep(0.01)
                raise KeyError('leaves both sections')
        allgather_object(None)
        is_first, size = hvd.rank() == 0, hvd.size()
        hvd.shutdown()
        with hvd.section('after the job'):
            pass
        if is_first:
            with open(path) as stream:
                sections = json.load(stream)['sections_us']
            self.assertEqual(set(sections), {'epoch', '\u00e9' * 15})
            self.assertEqual(len(sections['epoch']), size)
            self.assertGreaterEqual(min(sections['\u00e9' * 15]), 10000)
        for wrong in ('', None, b'data'):
            with self.assertRaisesRegex(TypeError, 'name is .*: expected a string'):
                with hvd.section(wrong):
                    pass

    def test_a_signal_to_one_rank_stops_all_ranks_at_the_same_step(self):
        hvd, seen = self.hvd, []
        before = signal.signal(signal.SIGTERM, lambda *_: seen.append(True))
        self.addCleanup(signal.signal, signal.SIGTERM, before)
        hvd.stop_on_signals()
        victim, when = hvd.size() - 1, 7
        steps = 0
        while not hvd.should_stop():
            steps += 1
            if hvd.rank() == victim and steps == when:
                os.kill(os.getpid(), signal.SIGTERM)
        self.assertEqual(set(allgather_object(steps)), {when})
        self.assertEqual(seen, [True] if hvd.rank() == victim else [])
        self.assertTrue(hvd.should_stop())
