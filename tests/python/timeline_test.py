# SPDX-License-Identifier: Apache-2.0
"""The timeline that a script starts and stops."""

import json
import os
import pathlib
import shutil
import tempfile

import torch

import horovod.torch as hvd
from process_sets_test import JobCase, begin_again

VARIABLE = 'HOROVOD_TIMELINE'


class Timeline(JobCase):

    def setUp(self):
        directory = tempfile.mkdtemp(prefix='hvd-test-') if hvd.rank() == 0 else None
        if directory is not None:
            self.addCleanup(shutil.rmtree, directory)
        self.directory = pathlib.Path(hvd.broadcast_object(directory))

    def record(self, file, name, **options):
        """Records an allreduce of this name; returns the contents of the file on rank 0."""
        hvd.start_timeline(self.directory / file, **options)
        hvd.barrier()
        hvd.allreduce(torch.ones(3), name=name)
        hvd.barrier()
        hvd.stop_timeline()
        hvd.barrier()  # wait until rank 0, which writes the file, has stopped
        hvd.allreduce(torch.ones(3), name='not recorded')
        if hvd.rank() > 0:
            return None
        with open(self.directory / file) as stream:
            return json.load(stream)

    def test_each_file_has_the_events_between_start_and_stop(self):
        os.environ[VARIABLE] = 'DYNAMIC'
        begin_again()
        for file in ('first', 'second'):
            events = self.record(file, f'in {file}', mark_cycles=file == 'second')
            if hvd.rank() == 0:
                text = json.dumps(events)
                self.assertIn(f'allreduce.in {file}', text)
                self.assertNotIn('not recorded', text)
                self.assertEqual('in first' in text, file == 'first')
                self.assertIn('NEGOTIATE_ALLREDUCE', {event.get('name') for event in events})

    def test_recording_needs_horovod_timeline_dynamic(self):
        os.environ.pop(VARIABLE, None)
        begin_again()
        with self.assertRaisesRegex(ValueError, 'Set HOROVOD_TIMELINE=DYNAMIC to enable dynamic '
                                    'timeline usage'):
            hvd.start_timeline(str(self.directory / 'refused'))

    def test_nothing_is_recorded_before_init(self):
        hvd.barrier()
        hvd.shutdown()
        for call in (lambda: hvd.start_timeline('file'), hvd.stop_timeline):
            with self.assertRaisesRegex(ValueError, 'not been initialized; use hvd.init'):
                call()
        hvd.init()
