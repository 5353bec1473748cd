# SPDX-License-Identifier: Apache-2.0
"""horovod.ray with the real Ray, on a cluster of two nodes: the second has a host name of its own, in a
UTS namespace."""

import importlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import unittest.mock

import digits_job
import ray

from horovod.common.absent import AbsentModuleError
from horovod.ray import ElasticRayExecutor, RayExecutor, runner

CPUS, GPUS = 4, 3  # of the first node, as Ray counts them; nothing uses real GPUs
SECOND = 'second'
SETTINGS = RayExecutor.create_settings(timeout_s=100)


def add_node():
    """Starts the second node; returns its process, or None where that is not allowed."""
    if subprocess.call(['unshare', '--uts', 'true'], stderr=subprocess.DEVNULL) != 0:
        return None
    address = ray.get_runtime_context().gcs_address
    start = os.path.join(os.path.dirname(sys.executable), 'ray')
    script = f'hostname {SECOND} && exec {start} start --address={address} --num-cpus=2 --block'
    node = subprocess.Popen(['unshare', '--uts', 'sh', '-c', script], stdout=subprocess.DEVNULL,
                            stderr=subprocess.DEVNULL)
    while sum(each['Alive'] for each in ray.nodes()) < 2 and node.poll() is None:
        time.sleep(0.1)
    return node


def end_node(node):
    if node:
        node.terminate()
        node.wait()


class Base(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix='hvd-ray-')
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        os.environ['RAY_TMPDIR'] = cls.folder  # also keeps the cluster apart from others of this user
        ray.init('local', num_cpus=CPUS, num_gpus=GPUS, include_dashboard=False,
                 log_to_driver=False, logging_level='error')
        cls.addClassCleanup(ray.shutdown)
        cls.node = add_node()
        cls.addClassCleanup(end_node, cls.node)
        cls.pair = RayExecutor(SETTINGS, num_workers=2, use_gpu=True)
        cls.pair.start(extra_env_vars={'OF_TEST': 7})

    def start(self, executor, **options):
        self.addCleanup(executor.shutdown)
        executor.start(**options)
        return executor


def wait_until(condition, limit_s=100):
    deadline = time.monotonic() + limit_s
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.1)


def numbers():
    import socket

    import horovod.common.basics as hvd
    from horovod.common.objects import allgather_object
    hvd.init()
    own = [hvd.rank(), hvd.size(), hvd.local_rank(), hvd.local_size(), hvd.cross_rank(),
           hvd.cross_size()]
    names = ('RANK', 'SIZE', 'LOCAL_RANK', 'LOCAL_SIZE', 'CROSS_RANK', 'CROSS_SIZE')
    told = [int(os.environ[f'HOROVOD_{name}']) for name in names]
    return own, told, allgather_object(hvd.rank()), socket.gethostname()


class Ray(Base):

    def test_results_come_in_rank_order_and_gpus_by_local_rank(self):
        def ask(first, second=None):
            import horovod.common.basics as hvd
            hvd.init()
            return (first, second, hvd.rank(), ray.get_gpu_ids(), os.environ['OF_TEST'],
                    os.environ['CUDA_VISIBLE_DEVICES'].split(',')[hvd.local_rank()])

        for _ in range(2):
            results = self.pair.run(ask, args=[3], kwargs={'second': 4})
            self.assertEqual([each[:3] for each in results], [(3, 4, 0), (3, 4, 1)])
            for _, _, _, own, of_test, seen in results:
                self.assertEqual((str(own[0]), of_test), (seen, '7'))
        self.assertEqual(ray.get(self.pair.run_remote(ask, args=[5]))[1][0], 5)
        with self.assertRaisesRegex(NotImplementedError, 'callbacks'):
            self.pair.run(ask, args=[1], callbacks=[print])
        with self.assertRaisesRegex(RuntimeError, 'call shutdown.. before start'):
            self.pair.start()

    def test_objects_live_in_their_workers(self):
        class Counter:
            def __init__(self, start, step=1):
                import horovod.common.basics as hvd
                hvd.init()
                self.value, self.step = start + hvd.rank(), step

            def count(self):
                self.value += self.step
                return self.value

        executor = self.start(RayExecutor(SETTINGS, num_workers=2), executable_cls=Counter,
                              executable_args=[10], executable_kwargs={'step': 5})
        self.assertEqual(executor.execute(lambda counter: counter.count()), [15, 16])
        self.assertEqual(executor.execute_single(lambda counter: counter.count()), 20)
        self.assertEqual(executor.execute(lambda counter: counter.value), [20, 16])

    def test_an_exception_is_raised_with_rank_and_host_and_the_workers_go_on(self):
        def fail():
            import horovod.common.basics as hvd
            from horovod.common.objects import allgather_object
            hvd.init()
            if hvd.rank() == 1:
                raise KeyError('nothing of this name')
            allgather_object(hvd.rank())

        with self.assertRaisesRegex(RuntimeError, r"^rank 1 on \S+ failed: KeyError: 'nothing of "
                                    r"this name'\n(?s:.*)in fail\n") as raised:
            self.pair.run(fail)
        self.assertIsInstance(raised.exception.__cause__, KeyError)
        self.assertEqual([own[0] for own, *_ in self.pair.run(numbers)], [0, 1])

    def test_the_workers_go_on_if_only_one_rank_has_failed(self):
        def fail(late):
            import horovod.common.basics as hvd
            if late:
                hvd.init()
            if os.environ['HOROVOD_RANK'] == '1':
                raise KeyError('nothing of this name')

        for late in (True, False):
            with self.assertRaisesRegex(RuntimeError, r'^rank 1 on \S+ failed: KeyError'):
                self.pair.run(fail, args=[late])
            self.assertEqual([heard for _, _, heard, _ in self.pair.run(numbers)], [[0, 1]] * 2)
        with self.assertRaisesRegex(RuntimeError, r'^rank 0 on \S+ failed: ZeroDivisionError'):
            self.pair.execute_single(lambda _: 1 // 0)
        self.assertEqual([heard for _, _, heard, _ in self.pair.run(numbers)], [[0, 1]] * 2)

    def test_sys_exit_is_a_failure_and_not_the_death_of_the_worker(self):
        executor = self.start(RayExecutor(SETTINGS, min_workers=1, max_workers=1))
        with self.assertRaisesRegex(RuntimeError, r'^rank 0 on \S+ failed: \w+: SystemExit: 3'):
            executor.run(sys.exit, args=[3])
        self.assertEqual(executor.run(os.getenv, args=['HOROVOD_RANK']), ['0'])

    def test_the_others_learn_why_a_rank_has_left(self):
        def fail():
            import horovod.common.basics as hvd
            from horovod.common.objects import allgather_object
            hvd.init()
            if hvd.rank() == 1:
                raise KeyError('nothing of this name')
            allgather_object(hvd.rank())

        with self.assertRaisesRegex(Exception, 'KeyError: .nothing of this name'):
            ray.get(self.pair.run_remote(fail)[0])

    def test_a_dead_worker_ends_the_run_and_start_makes_new_ones(self):
        executor = self.start(RayExecutor(SETTINGS, num_workers=2))

        def die():
            import horovod.common.basics as hvd
            from horovod.common.objects import allgather_object
            hvd.init()
            if hvd.rank() == 1:
                os.kill(os.getpid(), signal.SIGKILL)
            allgather_object(hvd.rank())

        with self.assertRaisesRegex(runner.WorkerDiedError, r'^rank 1 on \S+ died: '):
            executor.run(die)
        with self.assertRaisesRegex(RuntimeError, r'no workers, because rank 1 on \S+ failed: call '
                                    r'start'):
            executor.run(numbers)
        executor.start()
        self.assertEqual([own[0] for own, *_ in executor.run(numbers)], [0, 1])

    def test_a_rank_that_does_not_notice_a_failure_is_killed(self):
        executor = self.start(RayExecutor(SETTINGS, num_workers=2))

        def fail():
            if os.environ['HOROVOD_RANK'] == '1':
                raise KeyError('nothing of this name')
            signal.pause()

        with unittest.mock.patch.object(runner, '_GRACE_S', 0.1):
            with self.assertRaisesRegex(RuntimeError, 'rank 1 on .*KeyError'):
                executor.run(fail)
        self.assertEqual(executor._workers, [])

    def test_too_few_resources_are_named(self):
        settings = RayExecutor.create_settings(placement_group_timeout_s=0.5)
        for options, text in (({'num_workers': 50}, r"50 times \{'CPU': 1\} within"),
                              ({'num_hosts': 3}, r"3 times \{'CPU': 1\}, each on a node")):
            with self.assertRaisesRegex(TimeoutError, f'(?s){text}.*available: .*CPU'):
                self.start(RayExecutor(settings, **options))

    def test_wrong_arguments_are_named(self):
        for options, text in (({}, 'num_workers is None and num_hosts is None'),
                              ({'num_workers': 1, 'gpus_per_worker': 1}, 'use_gpu is False'),
                              ({'num_workers': 1, 'min_workers': 1}, 'min_workers is 1'),
                              ({'max_workers': 1}, 'min_workers is None')):
            with self.assertRaisesRegex(ValueError, text):
                RayExecutor(SETTINGS, **options)

    def test_settings_have_the_names_of_horovod(self):
        settings = runner.MiniSettings(key='one', ssh_port=22, timeout_s=7)
        self.assertLessEqual(settings.start_timeout.remaining(), 7)

    def test_missing_modules_name_the_executor(self):
        with self.assertRaisesRegex(AbsentModuleError, 'horovod.ray.elastic_v2: .*RayExecutor'):
            importlib.import_module('horovod.ray.elastic_v2')

    def test_two_nodes_have_local_and_cross_ranks(self):
        if not self.node:
            self.skipTest('no UTS namespaces here')
        executor = self.start(RayExecutor(SETTINGS, num_hosts=2, num_workers_per_host=2))
        results = executor.run(numbers)
        self.assertEqual([own for own, *_ in results], [[0, 4, 0, 2, 0, 2], [1, 4, 1, 2, 0, 2],
                                                        [2, 4, 0, 2, 1, 2], [3, 4, 1, 2, 1, 2]])
        self.assertEqual([told for _, told, *_ in results], [own for own, *_ in results])
        self.assertEqual([heard for _, _, heard, _ in results], [[0, 1, 2, 3]] * 4)
        hosts = [host for *_, host in results]
        self.assertEqual((hosts[0], hosts[2], len({*hosts})), (hosts[1], hosts[3], 2))

    def test_an_elastic_executor_starts_again_after_a_death(self):
        marker = os.path.join(self.folder, 'died')

        def train():
            import horovod.common.basics as hvd
            from horovod.common.objects import allgather_object
            hvd.init()
            if hvd.rank() == 1 and not os.path.exists(marker):
                open(marker, 'w').close()
                os._exit(1)
            allgather_object(hvd.rank())
            return hvd.rank(), hvd.size()

        settings = ElasticRayExecutor.create_settings(min_num_proc=2, max_num_proc=2, timeout_s=100)
        executor = ElasticRayExecutor(settings)
        executor.start()
        self.assertEqual(executor.run(train), [(0, 2), (1, 2)])
        os.unlink(marker)
        executor = self.start(RayExecutor(SETTINGS, min_workers=2, max_workers=2, reset_limit=0))
        with self.assertRaisesRegex(RuntimeError, 'rank 1 on .* died'):
            executor.run(train)
        executor = RayExecutor(SETTINGS, min_workers=50, elastic_timeout=0)
        with self.assertRaisesRegex(TimeoutError, 'but min_workers is 50'):
            self.start(executor)

    def test_a_death_during_the_new_start_counts_as_one_more(self):
        marker = os.path.join(self.folder, 'died once')

        def die_once():
            if not os.path.exists(marker):
                open(marker, 'w').close()
                os._exit(1)
            return os.environ['HOROVOD_RANK']

        executor = self.start(RayExecutor(SETTINGS, min_workers=1, max_workers=1, reset_limit=2))
        place_ranks, deaths = executor._place_ranks, [ray.exceptions.RayActorError()]

        def die_at_first(workers):
            place_ranks(workers)
            if deaths:
                raise deaths.pop()

        with unittest.mock.patch.object(executor, '_place_ranks', die_at_first):
            self.assertEqual(executor.run(die_once), ['0'])
        self.assertEqual(executor._elastic.resets, 2)
        executor.shutdown()
        deaths.append(ray.exceptions.RayActorError())
        with unittest.mock.patch.object(executor, '_place_ranks', die_at_first):
            with self.assertRaisesRegex(runner.WorkerDiedError, '^a worker died while it started: '):
                executor.start()

    def test_an_elastic_executor_starts_beside_others(self):
        settings = RayExecutor.create_settings(timeout_s=100, placement_group_timeout_s=10)
        executor = self.start(RayExecutor(settings, min_workers=1, use_gpu=True))  # `pair` has two GPUs
        self.assertEqual([own[1] for own, *_ in executor.run(numbers)], [1])

    def test_a_training_has_the_loss_that_it_has_under_hvdrun(self):
        log = os.path.join(self.folder, 'losses')
        executor = self.start(RayExecutor(SETTINGS, num_workers=2))
        executor.run(digits_job.function(log))
        self.assertEqual(digits_job.losses_of(log), digits_job.losses_of_hvdrun(2, self.folder))

    def test_nothing_is_left(self):
        free = ray.available_resources()
        executor = RayExecutor(SETTINGS, num_workers=1, use_gpu=True)
        executor.start()
        processes = executor.run(os.getpid)
        executor.shutdown()
        executor.shutdown()
        wait_until(lambda: not os.path.exists(f'/proc/{processes[0]}'))
        wait_until(lambda: ray.available_resources().get('CPU') == free.get('CPU'))
        self.assertEqual(ray.available_resources().get('GPU'), free.get('GPU'))
        self.assertFalse(os.path.exists(f'/proc/{processes[0]}'))
        with unittest.mock.patch.object(ray, 'get', side_effect=KeyboardInterrupt):
            with self.assertRaises(KeyboardInterrupt):
                executor.start()
        groups = ray.util.placement_group_table().values()
        self.assertEqual(sum(group['state'] != 'REMOVED' for group in groups), 1)  # that of `pair`

