# SPDX-License-Identifier: Apache-2.0
"""Life of the job, ranks, what is not there, and what forked children may do."""

import atexit
import os
import pickle
import subprocess
import sys
import unittest

import torch

import horovod
import horovod.torch as hvd
from horovod.torch import mpi_ops


def in_child(function):
    """What the function returns in a forked child, or the exception that it raised."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            result = function()
        except Exception as error:  # pylint: disable=broad-except
            result = error
        os.write(writer, pickle.dumps(result))
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, 'rb') as stream:
        result = pickle.loads(stream.read())
    os.waitpid(child, 0)
    return result


class Basics(unittest.TestCase):

    def setUp(self):
        hvd.init()

    def test_ranks_fit_together(self):
        pairs = hvd.allgather_object((hvd.rank(), hvd.size(), hvd.local_rank(),
                                      hvd.local_size(), hvd.cross_rank(), hvd.cross_size()))
        self.assertEqual([pair[0] for pair in pairs], list(range(hvd.size())))
        self.assertEqual({pair[1] for pair in pairs}, {hvd.size()})
        places = {(pair[2], pair[4]) for pair in pairs}
        self.assertEqual(len(places), hvd.size())
        for _, _, local_rank, local_size, cross_rank, cross_size in pairs:
            self.assertLess(local_rank, local_size)
            self.assertLess(cross_rank, cross_size)
        self.assertIsInstance(mpi_ops.is_homogeneous(), bool)

    def test_started_by_a_launcher_the_size_is_the_launchers(self):
        self.assertEqual(hvd.size(), int(os.environ.get('HVD_TEST_RANKS', 1)))

    def test_second_init_does_nothing(self):
        rank = hvd.rank()
        hvd.init()
        self.assertEqual(hvd.rank(), rank)

    def test_shutdown_and_init_again(self):
        for _ in range(3):
            before = hvd.rank()
            hvd.barrier()
            hvd.shutdown()
            self.assertFalse(hvd.is_initialized())
            with self.assertRaisesRegex(ValueError, 'has not been initialized; use hvd.init'):
                hvd.rank()
            with self.assertRaisesRegex(hvd.HorovodInternalError, 'use hvd.init'):
                hvd.allreduce(torch.ones(1))
            hvd.init()
            self.assertTrue(hvd.is_initialized())
            self.assertEqual(hvd.rank(), before)
            self.assertEqual(hvd.allreduce(torch.ones(1), op=hvd.Sum).item(), hvd.size())

    def test_rank_that_leaves_fails_what_others_wait_for(self):
        if hvd.size() == 1:
            self.skipTest('there are no others')
        hvd.barrier()
        if hvd.rank() == 0:
            hvd.shutdown()
        else:
            with self.assertRaisesRegex(hvd.HorovodInternalError, 'has been shut down'):
                hvd.allreduce(torch.ones(1), name='left alone')
            hvd.shutdown()
        hvd.init()
        self.assertEqual(hvd.allreduce(torch.ones(1), op=hvd.Sum).item(), hvd.size())

    def test_global_process_set_has_all_ranks(self):
        everyone = hvd.global_process_set
        self.assertEqual(everyone.process_set_id, 0)
        self.assertEqual(everyone.ranks, list(range(hvd.size())))
        self.assertEqual((everyone.size(), everyone.rank()), (hvd.size(), hvd.rank()))
        self.assertTrue(everyone.included())

    def test_unregistered_process_set_is_refused(self):
        alone = hvd.ProcessSet([0])
        self.assertEqual((alone.process_set_id, alone.size(), alone.rank()), (None, None, None))
        self.assertIs(alone.included(), hvd.rank() == 0)
        with self.assertRaisesRegex(ValueError, 'Allreduce: Process set provided does not exist, '
                                    'or has not been registered'):
            hvd.allreduce(torch.ones(1), process_set=alone)

    def test_transports_of_horovod_are_reported_absent(self):
        for built in (hvd.mpi_built, hvd.mpi_enabled, hvd.gloo_built, hvd.gloo_enabled,
                      hvd.ddl_built, hvd.ccl_built, hvd.rocm_built):
            self.assertIs(built(), False)
        with self.assertRaises(ValueError):
            hvd.mpi_threads_supported()

    def test_nccl_needs_cuda(self):
        self.assertIs(type(hvd.cuda_built()), bool)
        self.assertTrue(hvd.cuda_built() or hvd.nccl_built() == 0)

    def test_version_compares_as_horovods(self):
        self.assertGreaterEqual(tuple(map(int, horovod.__version__.split('.'))), (0, 28, 1))

    def test_forked_child_knows_its_rank_and_cannot_communicate(self):
        self.assertEqual(in_child(hvd.rank), hvd.rank())
        error = in_child(lambda: hvd.allreduce(torch.ones(1)))
        self.assertIsInstance(error, hvd.HorovodInternalError)
        self.assertIn('forked', str(error))

    def test_forked_child_leaves_the_job_alone(self):
        handle = hvd.allreduce_async(torch.ones(3), op=hvd.Sum)
        child = os.fork()
        if child == 0:
            hvd.shutdown()
            atexit._run_exitfuncs()
            os._exit(0)
        os.waitpid(child, 0)
        self.assertEqual(hvd.synchronize(handle).tolist(), [hvd.size()] * 3)

    @unittest.skipIf('libasan' in os.environ.get('LD_PRELOAD', ''),
                     "the sanitizer's allocator may be locked for ever in a forked child")
    def test_workers_of_a_data_loader_do_not_disturb(self):
        dataset = torch.utils.data.TensorDataset(torch.arange(8.0))
        for (batch,) in torch.utils.data.DataLoader(dataset, 4, num_workers=2):
            self.assertEqual(hvd.allreduce(batch, op=hvd.Max).tolist(), batch.tolist())

    def test_missing_library_is_an_import_error_that_helps(self):
        result = subprocess.run(
            [sys.executable, '-c', 'import horovod.torch'], capture_output=True, text=True,
            env=dict(os.environ, HVD_LIBRARY='/nowhere/libhvd.so'), check=False)
        self.assertIn('ImportError: cannot load libhvd.so', result.stderr)
        self.assertIn('/nowhere/libhvd.so', result.stderr)
