# SPDX-License-Identifier: Apache-2.0
"""horovod.spark with the real Spark: a local cluster of two executors of one core."""

import importlib
import io
import os
import shutil
import signal
import sys
import tempfile
import time
import unittest
import unittest.mock

import digits_job
from pyspark.sql import SparkSession

import horovod.spark
from horovod.common.absent import AbsentModuleError
from horovod.runner import keyed_channel
from horovod.spark import runner
from horovod.spark.rank import _Lines, _Messages

# Variables that a rank needs; executors inherit nothing from the driver.
PASSED_ON = ('PYTHONPATH', 'HVD_LIBRARY', 'OMP_NUM_THREADS', 'PYTHONDONTWRITEBYTECODE')


def numbers(word, other=None):
    import horovod.common.basics as hvd
    from horovod.common.objects import allgather_object
    hvd.init()
    print('rank', hvd.rank(), end='')
    sys.stderr.write(f'{word}\nnext\n')
    own = [hvd.rank(), hvd.size(), hvd.local_rank(), hvd.local_size(), hvd.cross_rank(),
           hvd.cross_size()]
    names = ('RANK', 'SIZE', 'LOCAL_RANK', 'LOCAL_SIZE', 'CROSS_RANK', 'CROSS_SIZE')
    told = [int(os.environ[f'HOROVOD_{name}']) for name in names]
    return own, told, allgather_object(hvd.rank()), word, other, os.environ.get('OF_TEST')


class Output(unittest.TestCase):

    def test_a_line_that_cannot_be_printed_is_no_failure(self):
        file = io.BytesIO()
        stream = io.TextIOWrapper(file, encoding='ascii', write_through=True)
        output = runner._Output(stream, stream, False)
        output.write(0, 'stdout', 'one\nm\xfcde\ntwo\n')
        self.assertEqual(file.getvalue().splitlines(), [b'[0]<stdout>:one', b'[0]<stdout>:two'])
        stream.close()
        output.write(0, 'stdout', 'three\n')
        full = unittest.mock.Mock(write=unittest.mock.Mock(side_effect=OSError('no space left')))
        runner._Output(full, full, False).write(0, 'stdout', 'one\n')


class Lines(unittest.TestCase):

    def test_lines_after_the_run_and_within_another_go_to_the_own_stream(self):
        class Channel:
            def send(self, message):
                sent.append(message)
                print('of a signal handler', file=lines)

        sent, own = [], tempfile.TemporaryFile('w+')
        self.addCleanup(own.close)
        messages = _Messages(Channel())
        lines = _Lines(messages.send, 'stdout', own)
        self.assertEqual((lines.write('one'), lines.fileno()), (3, own.fileno()))
        messages.end()
        self.assertEqual(lines.write('two'), 3)
        own.seek(0)
        self.assertEqual((sent, own.read()), ([('stdout', 'one')], 'of a signal handler\ntwo'))


@unittest.skipUnless(shutil.which('java') or 'JAVA_HOME' in os.environ,
                     'there is no java: apt-get install default-jre-headless')
class Spark(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix='hvd-spark-')
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        os.environ['PYSPARK_PYTHON'] = sys.executable
        # The workers of the local cluster write their logs to SPARK_HOME/work otherwise.
        os.environ['SPARK_WORKER_DIR'] = os.path.join(cls.folder, 'work')
        builder = SparkSession.builder.master('local-cluster[2,1,512]').config(map={
            'spark.executor.memory': '512m', 'spark.driver.memory': '512m',
            'spark.ui.enabled': 'false', 'spark.ui.showConsoleProgress': 'false',
            'spark.local.dir': os.path.join(cls.folder, 'local'),
            'spark.driver.host': '127.0.0.1', 'spark.driver.bindAddress': '127.0.0.1',
            **{f'spark.executorEnv.{name}': os.environ[name] for name in PASSED_ON
               if name in os.environ}})
        cls.session = builder.getOrCreate()
        cls.addClassCleanup(cls.session.stop)
        cls.session.sparkContext.setLogLevel('OFF')

    def test_results_come_in_rank_order_and_lines_with_their_rank(self):
        out, err = io.StringIO(), io.StringIO()
        results = horovod.spark.run(numbers, ('one',), {'other': 2}, env={'OF_TEST': 'yes'},
                                    stdout=out, stderr=err)
        common = [[0, 1], 'one', 2, 'yes']
        numbered = [[0, 2, 0, 2, 0, 1], [1, 2, 1, 2, 0, 1]]
        self.assertEqual(results, [(own, own, *common) for own in numbered])
        self.assertEqual(sorted(out.getvalue().splitlines()),
                         ['[0]<stdout>:rank 0', '[1]<stdout>:rank 1'])
        self.assertEqual(sorted(err.getvalue().splitlines()),
                         [f'[{rank}]<stderr>:{word}' for rank in (0, 1) for word in ('next', 'one')])
        again = horovod.spark.run(numbers, ('two',), num_proc=1, stdout=out, stderr=err)
        self.assertEqual(again, [([0, 1, 0, 1, 0, 1], [0, 1, 0, 1, 0, 1], [0], 'two', None, None)])

    def test_an_exception_is_raised_with_rank_and_host(self):
        def fail(end):
            import horovod.common.basics as hvd
            from horovod.common.objects import allgather_object
            hvd.init()
            if hvd.rank() == 1:
                end()
            allgather_object(hvd.rank())

        def key_error():
            raise KeyError('nothing of this name')

        for end, text in ((key_error, "KeyError: 'nothing of this name'\nTraceback(?s:.*)in fail\n"),
                          (lambda: sys.exit(3), 'SystemExit: 3\n')):
            with self.assertRaisesRegex(RuntimeError, rf'^rank 1 on \S+ failed: {text}'):
                horovod.spark.run(fail, (end,), num_proc=2)

    def test_secrets_reach_the_ranks_through_spark_alone(self):
        def ask():
            import horovod.common.basics as hvd
            hvd.init()
            return os.environ['HVD_SECRET'] == secret

        secret, sent, send = '0123456789abcdef' * 4, [], keyed_channel.Channel.send

        def record(channel, message):
            sent.append(repr(message))
            send(channel, message)

        for place, options in (({}, {'env': {'HVD_SECRET': secret}}), ({'HVD_SECRET': secret}, {})):
            with unittest.mock.patch.object(keyed_channel.Channel, 'send', record), \
                    unittest.mock.patch.dict(os.environ, place):
                self.assertEqual(horovod.spark.run(ask, num_proc=2, **options), [True, True])
        self.assertEqual(sum('HOROVOD_RANK' in each for each in sent), 4)
        self.assertFalse([each for each in sent if secret in each or 'SECRET' in each])

    def test_a_dead_process_ends_the_run_and_the_session_goes_on(self):
        def die():
            import horovod.common.basics as hvd
            from horovod.common.objects import allgather_object
            hvd.init()
            if hvd.rank() == 1:
                os.kill(os.getpid(), signal.SIGKILL)
            allgather_object(hvd.rank())

        with self.assertRaisesRegex(RuntimeError, r'^rank 1 on \S+ died: Spark has lost'):
            horovod.spark.run(die, num_proc=2)
        self.assertEqual([each[0][0] for each in horovod.spark.run(
            numbers, ('after',), stdout=io.StringIO(), stderr=io.StringIO())], [0, 1])

    def test_a_rank_that_does_not_notice_a_failure_is_cancelled(self):
        place = os.path.join(self.folder, 'process')

        def fail():
            if os.environ['HOROVOD_RANK'] == '1':
                raise KeyError('nothing of this name')
            with open(place, 'w') as file:
                file.write(str(os.getpid()))
            signal.pause()

        with unittest.mock.patch.object(runner, '_GRACE_S', 5):
            with self.assertRaisesRegex(RuntimeError, 'rank 1 on .*KeyError'):
                horovod.spark.run(fail, num_proc=2)
        with open(place) as file:
            process = file.read()
        deadline = time.monotonic() + 100
        while os.path.exists(f'/proc/{process}') and time.monotonic() < deadline:
            time.sleep(0.1)  # Spark's daemon has to reap it
        self.assertFalse(os.path.exists(f'/proc/{process}'))

    def test_too_few_cores_are_named(self):
        with self.assertRaisesRegex(TimeoutError, '^Timed out waiting for Spark tasks to start. 0 of '
                                    '3 started within 0.5 s'):
            horovod.spark.run(numbers, ('none',), num_proc=3, start_timeout=0.5)
        self.assertEqual(self.session.sparkContext.statusTracker().getActiveJobsIds(), [])

    def test_names_that_are_not_there_say_what_to_use(self):
        with self.assertRaisesRegex(NotImplementedError, 'horovod.spark.run again'):
            horovod.spark.run_elastic(numbers, ('none',), num_proc=2)
        with self.assertRaisesRegex(NotImplementedError, 'PYSPARK_PYTHON'):
            horovod.spark.run(numbers, executable='/usr/bin/python3')
        with self.assertRaisesRegex(TypeError, 'fn is None'):
            horovod.spark.run(None)
        for name in ('torch', 'keras', 'lightning', 'common.store'):
            with self.assertRaisesRegex(AbsentModuleError, 'write the data with Spark'):
                importlib.import_module(f'horovod.spark.{name}')

    def test_a_training_has_the_loss_that_it_has_under_hvdrun(self):
        log = os.path.join(self.folder, 'losses')
        horovod.spark.run(digits_job.function(log), num_proc=2, stdout=io.StringIO())
        self.assertEqual(digits_job.losses_of(log), digits_job.losses_of_hvdrun(2, self.folder))
