# SPDX-License-Identifier: Apache-2.0
"""A tf.data service on the ranks of a second job, for the ranks of this one."""

import contextlib
import itertools
import os
import shutil
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import unittest.mock

import tensorflow as tf

import horovod.tensorflow as hvd
from horovod.runner import keyed_server
from horovod.tensorflow.data import compute_service, compute_worker, registry
from horovod.tensorflow.data.compute_service import TfDataServiceConfig, tf_data_service
from launch import launcher
from tf.case import Case

ROWS = 64
SQUARES = [row * row for row in range(ROWS)]
SECONDS = 6000  # longer than any wait of these tests


def squares():
    return tf.data.Dataset.range(ROWS).map(lambda row: row * row).batch(4)


def rows_of(dataset):
    return [row for batch in dataset.as_numpy_iterator() for row in batch.tolist()]


def config_of(table):
    return TfDataServiceConfig(2, 3, 'compute', table.addresses, table.key, timeout=SECONDS)


def outside():
    """Returns the environment for a process that is not a rank of this job."""
    return {name: value for name, value in os.environ.items()
            if not name.startswith(('HOROVOD_', 'PMIX_', 'PMI_', 'OMPI_', 'PRTE_', 'HVD_'))
            or name == 'HVD_LIBRARY'}


class Job:
    """A service that rank 0 starts. Its methods return failures instead of raising them."""

    def __init__(self, workers, options):
        self._directory = tempfile.mkdtemp(prefix='hvd-test-')
        self._path = os.path.join(self._directory, 'config')
        self._output = open(os.path.join(self._directory, 'output'), 'w+', errors='replace')
        self._process = subprocess.Popen(
            [*launcher(workers), sys.executable, '-m', 'horovod.tensorflow.data.compute_worker',
             self._path, '--timeout', str(SECONDS), *options], env=outside(),
            stdout=self._output, stderr=subprocess.STDOUT)

    def begin(self):
        """Waits for the service. Returns (reason of a failure or None, its TfDataServiceConfig or
        None)."""
        while self._process.poll() is None:
            if os.path.exists(self._path):
                return None, TfDataServiceConfig.read(self._path)
            time.sleep(0.1)
        return self._trouble('did not begin'), None

    def end(self, config):
        """Ends the service, or kills it if there is no config. Returns the reason of a failure, or
        None."""
        try:
            if config:
                config.compute_client().shutdown()
                self._process.wait(SECONDS)
            return self._trouble('did not end well') if self._process.returncode else None
        except (OSError, subprocess.TimeoutExpired) as error:
            return self._trouble(f'did not end ({error})')
        finally:
            self._process.terminate()
            try:
                self._process.wait(10)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            self._output.close()
            shutil.rmtree(self._directory)

    def _trouble(self, what):
        self._output.seek(0)
        return (f'the job that provides the service {what}, exit status {self._process.poll()}\n'
                f'{self._output.read()}')


class Service(Case):
    """The service must work although the environment names a proxy that cannot reach the nodes."""

    def setUp(self):
        nobody = 'http://127.0.0.1:9'
        patch = unittest.mock.patch.dict(os.environ, http_proxy=nobody, https_proxy=nobody)
        patch.start()
        self.addCleanup(patch.stop)

    @contextlib.contextmanager
    def service(self, *options, workers=2):
        """A context manager that starts a job of workers, yields its TfDataServiceConfig, and ends
        the job. If one rank fails, also in the block, the test fails on all ranks, so that no rank
        waits for another."""
        job = Job(workers, options) if hvd.rank() == 0 else None
        failure, config = hvd.broadcast_object(job and job.begin())
        if config:
            try:
                yield config
            except Exception:  # pylint: disable=broad-except # all ranks are told
                failure = traceback.format_exc()
            failures = [each for each in hvd.allgather_object(failure) if each]
            failures.append(hvd.broadcast_object(job and job.end(config)))
            failure = '\n'.join(filter(None, failures))
        elif job:
            job.end(None)
        if failure:
            self.fail(failure)

    def test_each_rank_gets_all_the_data_or_its_share(self):
        with self.service() as config:
            self.assertEqual((config.dispatchers, config.workers_per_dispatcher), (1, 2))
            self.assertEqual((config.dispatcher_side, config.timeout), ('compute', SECONDS))
            dataset = squares().send_to_data_service(config, hvd.rank(), hvd.size())
            self.assertEqual(sorted(rows_of(dataset)), SQUARES)
            shared = rows_of(squares().send_to_data_service(config, hvd.rank(), hvd.size(),
                                                            reuse_dataset=True))
        self.assertEqual(sorted(itertools.chain(*hvd.allgather_object(shared))), SQUARES)

    def test_ranks_get_equally_many_steps_of_data_without_end(self):
        with self.assertRaisesRegex(AssertionError, 'of the last rank'):
            with self.service() as config:
                shared = squares().repeat().send_to_data_service(config, hvd.rank(), hvd.size(),
                                                                 reuse_dataset=True)
                steps = sum(1 for _ in shared.take(2 * ROWS))
                # Fails on the last rank; service() then fails on all ranks.
                self.assertLess(hvd.rank(), hvd.size() - 1, 'of the last rank')
        self.assertEqual(steps, 2 * ROWS)

    def test_a_service_that_does_not_start_is_an_error_on_all_ranks(self):
        with self.assertRaisesRegex(AssertionError, r'(?s)did not begin.*must be a multiple of'):
            with self.service('--dispatchers', '3'):
                pass

    def test_dispatchers_may_run_in_the_training(self):
        with self.service('--dispatchers', str(hvd.size()), '--dispatcher-side', 'training',
                          workers=hvd.size()) as config:
            with self.assertRaisesRegex(RuntimeError, 'use tf_data_service context manager'):
                squares().send_to_data_service(config, hvd.rank())
            with tf_data_service(config, hvd.rank()) as address:
                dataset = squares().apply(tf.data.experimental.service.distribute(
                    processing_mode='distributed_epoch', service=address))
                self.assertEqual(sorted(rows_of(dataset)), SQUARES)


class File(Case):
    """The configuration file. compute_worker.main, which these ranks run, writes it, and a thread
    of rank 0 reads it."""

    def setUp(self):
        self.directory = tempfile.mkdtemp(prefix='hvd-test-')
        self.addCleanup(shutil.rmtree, self.directory)
        self.path = os.path.join(self.directory, 'config')
        self.stale = TfDataServiceConfig(1, 1, 'compute', {'nowhere': [('nowhere', 1)]}, b'')

    def serve(self, talk):
        """Runs the service until ``talk``, which gets the TfDataServiceConfig, returns without an
        error."""
        def visit():
            config = TfDataServiceConfig.read(self.path, wait_for_file_creation=True)
            talk(config)
            config.compute_client().shutdown()

        visitor = threading.Thread(target=visit)

        def make(*arguments):
            self.was_there = os.path.exists(self.path)
            visitor.start()
            return registry.Registry(*arguments)

        with unittest.mock.patch.object(compute_worker, 'Registry', make):
            compute_worker.main(1, 'compute', self.path, SECONDS)
        if hvd.rank() == 0:
            visitor.join()

    def test_the_file_exists_while_its_service_runs(self):
        self.stale.write(self.path)
        self.serve(lambda config: None)
        if hvd.rank() == 0:
            self.assertFalse(self.was_there)
            self.assertEqual(os.listdir(self.directory), [])

    def test_the_file_of_another_service_stays(self):
        self.serve(lambda config: self.stale.write(self.path))
        if hvd.rank() == 0:
            self.assertEqual(TfDataServiceConfig.read(self.path), self.stale)


class Registry(Case):

    def setUp(self):
        self.table = registry.Registry(2, 3)
        self.addCleanup(self.table.close)
        self.client = config_of(self.table).compute_client(verbose=2)

    def test_the_file_is_for_its_owner_alone_and_has_everything(self):
        config = config_of(self.table)
        self.assertEqual(TfDataServiceConfig.from_dict(config.to_dict()), config)
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, 'config')
            config.write(path)
            self.assertEqual(stat.S_IMODE(os.stat(path).st_mode), 0o600)
            self.assertEqual(os.listdir(directory), ['config'])
            self.assertEqual(TfDataServiceConfig.read(path), config)

    def test_a_file_that_another_user_could_have_written_or_read_is_refused(self):
        config = config_of(self.table)
        with tempfile.TemporaryDirectory() as directory:
            path, other = os.path.join(directory, 'config'), os.path.join(directory, 'other')
            for mode in (0o644, 0o620, 0o602, 0o640):
                config.write(path)
                os.chmod(path, mode)
                with self.assertRaisesRegex(PermissionError, f'config has mode {mode:04o}, not 06'):
                    TfDataServiceConfig.read(path, wait_for_file_creation=True)
            config.write(other)
            os.unlink(path)
            os.symlink(other, path)
            with self.assertRaisesRegex(PermissionError, 'config is a symbolic link'):
                TfDataServiceConfig.read(path)
            config.write(path)  # replaces the link, not the file to which it points
            self.assertFalse(os.path.islink(path))
            self.assertEqual(TfDataServiceConfig.read(path), config)
            os.unlink(path)
            os.mkfifo(path, 0o600)
            with self.assertRaisesRegex(PermissionError, 'config is not a regular file'):
                TfDataServiceConfig.read(path)

    @unittest.skipIf(os.geteuid() != 0, 'needs root, to make a file of another user')
    def test_a_file_of_another_user_is_refused(self):
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, 'config')
            config_of(self.table).write(path)
            os.chown(path, 65534, -1)
            with self.assertRaisesRegex(PermissionError, 'belongs to user 65534, not to 0: the job'):
                TfDataServiceConfig.read(path)

    def test_nothing_stays_of_a_file_that_cannot_be_written(self):
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, 'config')
            os.mkdir(path)
            with self.assertRaises(IsADirectoryError):
                config_of(self.table).write(path)
            self.assertEqual(os.listdir(directory), ['config'])

    def test_parts_are_waited_for(self):
        late = threading.Timer(0.2, self.client.register_dispatcher, (1, 'grpc://there:1'))
        late.start()
        self.assertEqual(self.client.wait_for_dispatcher_registration(1, SECONDS),
                         'grpc://there:1')
        late.join()
        for worker in range(3, 6):
            self.client.register_worker_for_dispatcher(1, worker)
        self.client.wait_for_dispatcher_worker_registration(1, SECONDS)

    def test_missing_parts_are_named(self):
        self.client.register_worker_for_dispatcher(0, 0)
        with self.assertRaisesRegex(TimeoutError, 'waited 0.1 s for dispatcher 0'):
            self.client.wait_for_dispatcher_registration(0, 0.1)
        with self.assertRaisesRegex(TimeoutError, '3 workers of dispatcher 0, of which 1 came'):
            self.client.wait_for_dispatcher_worker_registration(0, 0.1)

    def test_shutdown_reaches_all_who_wait(self):
        waiting = threading.Thread(target=self.client.wait_for_shutdown)
        waiting.start()
        self.client.shutdown()
        waiting.join(SECONDS)
        self.assertFalse(waiting.is_alive())
        with self.assertRaisesRegex(RuntimeError, 'has been shut down'):
            self.client.wait_for_dispatcher_registration(0, SECONDS)

    def test_a_missing_registry_is_an_error(self):
        self.table.close()
        with self.assertRaisesRegex(ConnectionError, 'compute_worker, still run'):
            self.client.shutdown()

    def test_unknown_dispatchers_are_named_in_the_error(self):
        for number in (2, -1):
            for ask in (self.client.wait_for_dispatcher_registration,
                        self.client.wait_for_dispatcher_worker_registration,
                        self.client.register_dispatcher,
                        self.client.register_worker_for_dispatcher):
                with self.assertRaisesRegex(ValueError, f'no dispatcher {number}: .* has 2, '
                                                        'counted from 0. --dispatchers of'):
                    ask(number, 1)

    def test_a_registry_that_dies_during_a_request_is_an_error(self):
        with keyed_server.KeyedServer('127.0.0.1', lambda connection: connection.recv()) as server:
            places = {'here': [('127.0.0.1', server.port)]}
            with self.assertRaisesRegex(ConnectionError, 'compute_worker, still run'):
                registry.RegistryClient(places, server.key).wait_for_shutdown()

    def test_the_port_of_another_server_is_an_error(self):
        stranger = registry.RegistryClient(self.table.addresses, b'of another service')
        with self.assertRaisesRegex(ConnectionError, 'compute_worker, still run'):
            stranger.shutdown()

    def test_host_names_without_an_ipv4_address_are_not_used(self):
        def only_6(name, port, family=0):
            if family == socket.AF_INET:
                raise socket.gaierror('no address of this family')
            return [(socket.AF_INET6, socket.SOCK_STREAM, 6, '', ('fd00::1', port, 0, 0))]

        with unittest.mock.patch.object(socket, 'getaddrinfo', only_6):
            self.assertEqual(registry.own_host(), '127.0.0.1')

    def test_the_registry_is_at_the_interface_that_the_user_chooses(self):
        with unittest.mock.patch.dict(os.environ, HVD_IFACE='lo'):
            table = registry.Registry(1, 1)
        self.addCleanup(table.close)
        [[(host, port)]] = table.addresses.values()
        self.assertEqual(host, '127.0.0.1')
        with self.assertRaises(ConnectionRefusedError):
            socket.create_connection(('127.0.0.2', port))

    def test_a_worker_does_not_wait_for_ever(self):
        config = TfDataServiceConfig(2, 3, 'training', self.table.addresses, self.table.key, 0.1)
        with self.assertRaisesRegex(TimeoutError, 'for dispatcher 0'):
            compute_service.compute_worker_fn(config)

    def test_a_worker_that_starts_after_the_end_exits(self):
        self.client.shutdown()
        with unittest.mock.patch.object(compute_service, '_worker') as worker:
            compute_service.compute_worker_fn(config_of(self.table))
        worker.assert_not_called()

    def test_each_dispatcher_has_equally_many_workers(self):
        with self.assertRaisesRegex(ValueError, 'must be a multiple of number of dispatchers'):
            compute_worker.main(hvd.size() + 1, 'compute', 'file', 1)

    def test_methods_of_datasets_are_the_functions(self):
        self.assertIs(tf.data.Dataset.send_to_data_service, compute_service.send_to_data_service)
