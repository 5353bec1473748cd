# SPDX-License-Identifier: Apache-2.0
"""init and shutdown, ranks, missing features, and forked children."""

import atexit
import os
import pickle
import subprocess
import sys
import unittest

import torch

import basics_cases
import horovod
import horovod.torch as hvd
from horovod.torch import mpi_ops


def in_child(function):
    """Calls the function in a forked child. Returns its result, or the exception that it raised."""
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


class OfTorch(basics_cases.Basics, unittest.TestCase):
    hvd = hvd

    def test_homogeneity_is_known(self):
        self.assertIsInstance(mpi_ops.is_homogeneous(), bool)

    def test_collectives_fail_after_shutdown(self):
        hvd.barrier()
        hvd.shutdown()
        with self.assertRaisesRegex(hvd.HorovodInternalError, 'use hvd.init'):
            hvd.allreduce(torch.ones(1))
        hvd.init()
        self.assertEqual(hvd.allreduce(torch.ones(1), op=hvd.Sum).item(), hvd.size())

    def test_a_rank_that_leaves_makes_collectives_of_others_fail(self):
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

    def test_unregistered_process_set_is_refused(self):
        alone = hvd.ProcessSet([0])
        self.assertEqual((alone.process_set_id, alone.size(), alone.rank()), (None, None, None))
        self.assertIs(alone.included(), hvd.rank() == 0)
        with self.assertRaisesRegex(ValueError, 'Allreduce: Process set provided does not exist, '
                                    'or has not been registered'):
            hvd.allreduce(torch.ones(1), process_set=alone)

    def test_the_version_compares_like_horovods(self):
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
    def test_workers_of_a_data_loader_do_not_disturb_the_job(self):
        dataset = torch.utils.data.TensorDataset(torch.arange(8.0))
        for (batch,) in torch.utils.data.DataLoader(dataset, 4, num_workers=2):
            self.assertEqual(hvd.allreduce(batch, op=hvd.Max).tolist(), batch.tolist())

    def test_a_missing_library_is_an_import_error_with_the_remedy(self):
        result = subprocess.run(
            [sys.executable, '-c', 'import horovod.torch'], capture_output=True, text=True,
            env=dict(os.environ, HVD_LIBRARY='/nowhere/libhvd.so'), check=False)
        self.assertIn('ImportError: cannot load libhvd.so', result.stderr)
        self.assertIn('/nowhere/libhvd.so', result.stderr)
