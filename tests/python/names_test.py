# SPDX-License-Identifier: Apache-2.0
"""Each name that other projects or Horovod's tests import exists, or its error names a
replacement."""

import importlib
import inspect
import threading
import unittest
import unittest.mock

import torch

import horovod
import horovod.torch as hvd
import horovod_itself
from horovod.common import absent, util
from horovod.common.basics import Average, Sum
from horovod.common.exceptions import get_version_mismatch_message
from horovod.data import AsyncDataLoaderMixin, BaseDataLoader
from horovod.runner.common.util import codec, secret, timeout
from horovod.runner.elastic.worker import HostUpdateResult
from horovod.runner.util import threads
from horovod.torch import mpi_ops
from horovod.torch.optimizer import _DistributedAdasumOptimizer

VERSIONS = ('1.13.0', '1.13.1', '2.0.0', '2.0.0rc1', '2.0.0.dev3', '2.0', '2.0.1+cu118', '10.2.3')


class Absent(unittest.TestCase):

    def test_missing_modules_name_a_replacement(self):
        for name, instead in (
                ('horovod.runner.gloo_run', 'hvdrun'),
                ('horovod.runner.mpi_run', 'mpirun'), ('horovod.runner.http.http_server', 'hvdrun'),
                ('horovod.runner.elastic.driver', 'srun --hvd=elastic'),
                ('horovod.runner.common.util.config_parser', '--config-file'),
                ('horovod.runner.common.service.compute_service', 'tensorflow.data'),
                ('horovod.torch.mpi_lib_v2', 'horovod.torch.mpi_ops')):
            with self.subTest(module=name):
                package, _, module = name.rpartition('.')
                for statement in (f'import {name}', f'from {package} import {module}',
                                  f'from {package} import {module} as other'):
                    with self.assertRaises(absent.AbsentModuleError, msg=statement) as raised:
                        exec(statement, {})
                    self.assertTrue(str(raised.exception).startswith('hvd has no horovod.'))
                    self.assertIn(instead, str(raised.exception))
        self.assertFalse(hasattr(horovod, 'ray'))
        with self.assertRaises(ModuleNotFoundError) as raised:
            importlib.import_module('horovod.nonsense')
        self.assertNotIsInstance(raised.exception, absent.AbsentModuleError)

    def test_every_module_of_horovod_exists_or_names_a_replacement(self):
        modules = horovod_itself.ask(
            'import horovod, os, pkgutil\n'
            'answer = [each.name for each in pkgutil.walk_packages(\n'
            '    horovod.__path__, "horovod.", onerror=lambda name: None)]\n'
            'root = os.path.dirname(horovod.__file__)\n'
            'for place, _, files in os.walk(root):\n'
            '    parts = ["horovod", *os.path.relpath(place, root).split(os.sep)]\n'
            '    answer += [".".join([*parts, each[:-3]]).replace("..", ".") for each in files\n'
            '               if each.endswith(".py")]\n'
            'answer = sorted({each.replace(".__init__", "").strip(".") for each in answer})')
        self.assertIn('horovod.runner.util.threads', modules)
        for name in modules:
            if name.startswith(('horovod.tensorflow', 'horovod.keras', 'horovod._keras',
                                'horovod.mxnet', 'horovod.jax', 'horovod.ray', 'horovod.spark')):
                continue  # these need frameworks that may be missing
            with self.subTest(module=name):
                try:
                    importlib.import_module(name)
                except absent.AbsentModuleError as error:
                    self.assertIn('hvd has no', str(error))


class Util(unittest.TestCase):

    def test_versions_compare_as_in_horovod(self):
        targets = ('1.13.0', '2.0.0', '2.0.1')
        theirs = horovod_itself.ask(
            'from horovod.common.util import is_version_greater_equal_than as later\n'
            f'answer = [[later(each, target) for target in {targets}] for each in {VERSIONS}]')
        self.assertEqual(theirs, [[util.is_version_greater_equal_than(each, target)
                                   for target in targets] for each in VERSIONS])
        for wrong in ((1.13, '1.13.0'), ('1.13.0', '1.13'), ('1.13.0', None)):
            with self.assertRaises(ValueError):
                util.is_version_greater_equal_than(*wrong)

    def test_small_functions_do_what_their_names_say(self):
        calls = []
        once = util._cache(lambda value, factor=1: calls.append(value) or value * factor)
        self.assertEqual([once(3), once(3), once(3, factor=2)], [3, 3, 6])
        self.assertEqual(calls, [3, 3])
        self.assertTrue(util.is_iterable([]) and not util.is_iterable(3))
        self.assertEqual(util.EXTENSIONS, ['tensorflow', 'torch', 'mxnet'])
        for choose in (util.get_average_backwards_compatibility_fun(util.basics),
                       mpi_ops.handle_average_backwards_compatibility):
            self.assertEqual(choose(None, None), Average)
            self.assertEqual(choose(Sum, None), Sum)
        util.check_extension('horovod.torch', 'HOROVOD_WITH_PYTORCH', __file__, 'mpi_lib_v2')
        with self.assertRaisesRegex(ImportError, 'horovod.nonsense has not been built'):
            util.check_extension('horovod.nonsense', 'HOROVOD_WITH_NONSENSE', __file__, 'mpi_lib')
        path = util.get_extension_full_path('/package/__init__.py', 'mpi_lib')
        self.assertEqual(path, '/package/mpi_lib' + util.get_ext_suffix())
        self.assertIsNone(util.check_installed_version('pytorch', '0.1'))
        self.assertIn('1.12', get_version_mismatch_message('torch', '1.12', '1.13'))

    def test_objects_keys_and_limits(self):
        self.assertEqual(codec.loads_base64(codec.dumps_base64({'a': [1]})), {'a': [1]})
        self.assertIsInstance(codec.dumps_base64(3, to_ascii=False), bytes)
        key = secret.make_secret_key()
        digest = secret.compute_digest(key, b'message')
        self.assertEqual((len(key), len(digest)), (secret.SECRET_LENGTH, secret.DIGEST_LENGTH))
        self.assertEqual(secret.HOROVOD_SECRET_KEY, '_HOROVOD_SECRET_KEY')
        self.assertTrue(secret.check_digest(key, b'message', digest))
        self.assertFalse(secret.check_digest(key, b'other', digest))
        far, over = timeout.Timeout(1000, 'Too slow'), timeout.Timeout(-1, 'No {activity}.')
        self.assertGreater(far.remaining(), 0)
        far.check_time_out_for('work')
        self.assertTrue(over.timed_out() and not far.timed_out())
        with self.assertRaisesRegex(timeout.TimeoutException,
                                    r'^No work. Timeout after -1 seconds.$') as raised:
            over.check_time_out_for('work')
        self.assertEqual(raised.exception.message, str(raised.exception))

    def test_values_of_host_update_result_are_horovods(self):
        self.assertEqual([HostUpdateResult.no_update, HostUpdateResult.removed,
                          HostUpdateResult.added, HostUpdateResult.mixed], [0, 1, 2, 3])


class Threads(unittest.TestCase):

    def test_functions_run_in_threads(self):
        results = threads.execute_function_multithreaded(
            lambda a, b: a + b, [[1, 2], [3, 4], [5, 6]], max_concurrent_executions=2)
        self.assertEqual(results, {0: 3, 1: 7, 2: 11})
        with unittest.mock.patch('threading.excepthook'):
            with self.assertRaisesRegex(RuntimeError, 'did not complete successfully'):
                threads.execute_function_multithreaded(lambda: 1 / 0, [[]])
            threads.in_thread(lambda: 1 / 0, silent=True).join()
        with self.assertRaisesRegex(ValueError, 'args must be a tuple'):
            threads.in_thread(print, 'text')

    def test_a_function_waits_for_an_event(self):
        event, called = threading.Event(), []
        thread = threads.on_event(event, called.append, ('it',))
        self.assertEqual(called, [])
        event.set()
        thread.join()
        self.assertEqual(called, ['it'])
        stop = threading.Event()
        thread = threads.on_event(threading.Event(), called.append, ('it',), stop=stop,
                                  check_stop_interval_s=0.01, daemon=False)
        stop.set()
        thread.join()
        self.assertEqual(called, ['it'])
        for wrong in ((None, print), (event, print, 'text')):
            with self.assertRaises(ValueError):
                threads.on_event(*wrong)
        with self.assertRaisesRegex(ValueError, 'Stop event'):
            threads.on_event(event, print, daemon=False)


class Count(BaseDataLoader):

    def __init__(self, end):
        self.end = end

    def __len__(self):
        return self.end

    def _iterate(self):
        yield from range(self.end)
        if self.end == 3:
            raise KeyError('three')


class CountAhead(AsyncDataLoaderMixin, Count):

    def _process_batch(self, batch):
        return batch * 10


class Data(unittest.TestCase):

    def test_batches_come_in_their_order_pass_after_pass(self):
        self.assertEqual(list(Count(5)), [0, 1, 2, 3, 4])
        for size in (0, 1, 64):
            loader = CountAhead(async_loader_queue_size=size, end=5)
            for _ in range(3):
                self.assertEqual(list(loader), [0, 10, 20, 30, 40])
            loader.close_async_loader()
            self.assertEqual(loader.async_loader_queue_size, size)
            self.assertFalse(size and loader.thread.is_alive())

    def test_a_failure_comes_where_the_batches_are_used(self):
        loader = CountAhead(end=3)
        with self.assertRaisesRegex(KeyError, 'three'):
            list(loader)
        loader.close_async_loader()


class Torch(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        hvd.init()

    def test_functions_of_autograd_are_there(self):
        for name in ('Allreduce', 'GroupedAllreduce', 'Allgather', 'GroupedAllgather', 'Broadcast',
                     'Alltoall', 'Reducescatter', 'GroupedReducescatter'):
            self.assertTrue(issubclass(getattr(mpi_ops, f'Horovod{name}'),
                                       torch.autograd.Function))
        for each in (mpi_ops.HorovodAllreduce, mpi_ops.HorovodGroupedAllreduce,
                     mpi_ops.HorovodAllgather, mpi_ops.HorovodGroupedAllgather,
                     mpi_ops.HorovodBroadcast, mpi_ops.HorovodAlltoall,
                     mpi_ops.HorovodReducescatter, mpi_ops.HorovodGroupedReducescatter):
            self.assertTrue(callable(each.apply))
        self.assertIs(hvd._check_has_gpu(), torch.cuda.is_available())

    def test_an_optimizer_knows_the_names_of_its_parameters(self):
        model = torch.nn.Linear(2, 3)
        for op in (hvd.Average, hvd.Adasum):
            if op == hvd.Adasum and hvd.size() & (hvd.size() - 1):
                continue
            for named in (True, False):
                optimizer = hvd.DistributedOptimizer(
                    torch.optim.SGD(model.parameters(), 0.1),
                    model.named_parameters() if named else None, op=op)
                names = (['weight', 'bias'] if named
                         else ['allreduce.noname.0.0', 'allreduce.noname.0.1'])
                self.assertEqual([optimizer._parameter_names[each]
                                  for each in model.parameters()], names)
                if op == hvd.Adasum and hvd.size() > 1:
                    self.assertIsInstance(optimizer, _DistributedAdasumOptimizer)

    def test_parameters_of_several_groups_have_names_of_their_own(self):
        model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.Linear(3, 1))
        groups = [{'params': list(layer.parameters())} for layer in model]
        for op in (hvd.Average, hvd.Adasum):
            if op == hvd.Adasum and hvd.size() & (hvd.size() - 1):
                continue
            optimizer = hvd.DistributedOptimizer(torch.optim.SGD(groups, 0.1), op=op)
            self.assertEqual([optimizer._parameter_names[each] for each in model.parameters()],
                             [f'allreduce.noname.{group}.{index}'
                              for group in (0, 1) for index in (0, 1)])

    def test_run_takes_horovods_arguments_in_their_order(self):
        theirs = horovod_itself.ask(
            'import horovod, inspect\nanswer = list(inspect.signature(horovod.run).parameters)')
        self.assertEqual(list(inspect.signature(horovod.run).parameters), theirs)
