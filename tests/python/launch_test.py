# SPDX-License-Identifier: Apache-2.0
"""launch.py finds frameworks without importing them, and cleans up at its time limit."""

import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

import launch

# A framework that cannot be imported, and two tests, the second of which waits for ever.
FRAMEWORK = 'raise SystemExit("imported")\n'
TESTS = '''
import os, signal, unittest
class Endless(unittest.TestCase):
    def test_a(self):
        pass
    def test_b(self):
        with open(os.environ['HVD_TEST_FIFO'], 'w') as fifo:
            print(os.getpid(), file=fifo)
        signal.pause()
'''


class Launch(unittest.TestCase):

    def setUp(self):
        directory = tempfile.TemporaryDirectory(prefix='hvd-test-')
        self.addCleanup(directory.cleanup)
        self.directory = pathlib.Path(directory.name)
        (self.directory / 'pretended.py').write_text(FRAMEWORK)
        (self.directory / 'endless.py').write_text(TESTS)
        patch = unittest.mock.patch.dict(os.environ, PYTHONPATH=directory.name,
                                         TMPDIR=directory.name)
        patch.start()
        self.addCleanup(patch.stop)
        os.environ.pop('HVD_TAP_DIR', None)

    def test_frameworks_are_found_without_importing_them(self):
        with unittest.mock.patch('launch.comment') as comment:
            self.assertIsNone(launch.missing(1, 'json, pretended'))
            self.assertIn('lacks json, neverland', launch.missing(1, 'json, neverland'))
        comment.assert_called_once_with('with json ? pretended ?')

    def test_at_the_time_limit_it_prints_the_results_so_far_and_cleans_up(self):
        fifo = str(self.directory / 'fifo')
        os.mkfifo(fifo)
        with subprocess.Popen([sys.executable, launch.__file__, '1', 'endless'], text=True,
                              env=dict(os.environ, HVD_TEST_NEEDS='json', HVD_TEST_FIFO=fifo),
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            with open(fifo) as file:
                rank = int(file.read())
            process.send_signal(signal.SIGTERM)
            output, errors = process.communicate()
        self.assertEqual(process.returncode, 1)
        self.assertIn('ok 1 - Endless: a\n', output)
        self.assertNotIn('1..', output)
        self.assertIn('out of time', errors)
        with self.assertRaises(ProcessLookupError):
            os.kill(rank, 0)
        self.assertEqual(sorted(os.listdir(self.directory)),
                         ['endless.py', 'fifo', 'pretended.py'])

    def test_a_job_that_does_not_end_is_killed_and_its_output_is_kept(self):
        deaf = "trap '' TERM; echo deaf; while :; do sleep 1; done"
        with unittest.mock.patch.multiple(launch, LIMIT_S=10, GRACE_S=0.1):
            status, output = launch.run_ranks(1, ['-c', deaf], python='/bin/sh')
        self.assertEqual(status, 124)
        self.assertIn('deaf\n', output)
        self.assertIn('ended: it ran for 10 s', output)
