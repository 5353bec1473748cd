# SPDX-License-Identifier: Apache-2.0
"""horovod.run, which calls a function on all ranks, and other ways to start jobs from Python."""

import importlib.util
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import unittest

import horovod
from horovod.common import util
from horovod.common.exceptions import HorovodVersionMismatchError, HostsUpdatedInterrupt
from horovod.runner import _HorovodArgs, run
from horovod.runner.common.util import hosts
from horovod.runner.common.util.env import get_env_rank_and_size
from horovod.runner.launch import _run, find_hvdrun, words_of


def reduced(first, second=0):
    """Returns the rank and a sum over all ranks; run on each rank."""
    import torch

    import horovod.torch as hvd
    hvd.init()
    return hvd.rank(), hvd.allreduce(torch.tensor([first + second]), op=hvd.Sum).item()


class Run(unittest.TestCase):

    def test_results_come_by_rank(self):
        self.assertEqual(horovod.run(reduced, (2,), {'second': 3}, num_proc=3),
                         [(0, 15), (1, 15), (2, 15)])

    def test_one_rank_is_the_default(self):
        self.assertEqual(run(get_env_rank_and_size), [(0, 1)])

    def test_functions_of_a_script_and_lambdas_can_be_called(self):
        with tempfile.TemporaryDirectory() as directory:
            script = os.path.join(directory, 'script.py')
            with open(script, 'w') as file:
                file.write('import horovod\nfactor = 7\n'
                           'def work(number):\n    return number * factor\n'
                           'print(horovod.run(work, (6,), num_proc=2))\n'
                           'print(horovod.run(lambda: factor, num_proc=2))\n')
            output = subprocess.run([sys.executable, script], text=True, check=True,
                                    stdout=subprocess.PIPE).stdout
        self.assertEqual(output, '[42, 42]\n[7, 7]\n')

    def test_large_arguments_and_results_work(self):
        sent = bytes(range(256)) * 40000
        self.assertEqual(run(lambda data: data + b'!', (sent,), num_proc=2), [sent + b'!'] * 2)

    def test_a_failure_of_a_rank_is_raised_by_run(self):
        def work():
            if get_env_rank_and_size()[0] == 1:
                raise KeyError('nothing of this name')
            signal.pause()  # until the job ends

        with self.assertRaisesRegex(RuntimeError, r'(?s)one or more processes exited with '
                                    "non-zero status.*name: 1\n.*KeyError: 'nothing of this name'"):
            run(work, num_proc=2)

    def test_a_result_that_cannot_be_pickled_is_an_error(self):
        with self.assertRaisesRegex(RuntimeError, 'pickle'):
            run(lambda: socket.socket(), num_proc=1)

    def test_a_rank_that_ends_early_is_an_error(self):
        with self.assertRaisesRegex(RuntimeError, 'no result'):
            run(lambda: os._exit(0), num_proc=1)
        with self.assertRaisesRegex(RuntimeError, 'exit code 7'):
            run(lambda: os._exit(7), num_proc=1)

    def test_a_dead_node_is_noticed(self):
        program = os.path.join(os.path.dirname(__file__), 'dead_node.py')
        for apart in (['unshare', '--net'], ['unshare', '--user', '--map-root-user', '--net']):
            if subprocess.call([*apart, 'true'], stderr=subprocess.DEVNULL) == 0:
                break
        else:
            self.skipTest('a network namespace cannot be had')
        job = subprocess.run([*apart, sys.executable, program], text=True, check=False,
                             stdout=subprocess.PIPE)
        if job.returncode == 77:
            self.skipTest(f'a link cannot be had: {job.stdout}')
        self.assertEqual((job.stdout, job.returncode), ('noticed\nnoticed\n', 0))

    def test_clients_without_the_key_get_nothing(self):
        def work():
            return len(os.environ.get('HVD_RUN_KEY', ''))

        self.assertEqual(run(work), [0])

    def test_options_reach_hvdrun(self):
        with tempfile.TemporaryDirectory() as directory:
            run(lambda: print('said'), num_proc=2, output_filename=directory, start_timeout=5000,
                hosts='localhost:2', use_gloo=True, disable_cache=True)
            for rank in range(2):
                with open(os.path.join(directory, f'rank.{rank}', 'stdout')) as file:
                    self.assertEqual(file.read(), 'said\n')

    def test_every_argument_has_its_option(self):
        help_text = subprocess.run([find_hvdrun(), '--help'], text=True, check=True,
                                   stdout=subprocess.PIPE).stdout
        options = _HorovodArgs()
        for name in vars(options):
            setattr(options, name, [1, 2] if name == 'cooldown_range' else 1)
        for word in words_of(options):
            if word.startswith('--'):
                self.assertRegex(help_text, rf'{word}\b')

    def test_wrong_arguments_are_refused(self):
        for options, message in (
                (dict(hosts='a:1', hostfile='b'), 'only allow one'),
                (dict(use_gloo=True, use_mpi=True), 'only allow one')):
            with self.assertRaisesRegex(ValueError, message):
                run(len, num_proc=2, **options)
        for name, wrong in (('func', 'len'), ('args', 3), ('args', 'ab'), ('kwargs', (1,))):
            found = f'{name} is {re.escape(repr(wrong))}, of type .*: expected'
            with self.assertRaisesRegex(TypeError, found):
                run(**{'func': len, name: wrong})
        with self.assertRaisesRegex(RuntimeError, 'exit code 2'):
            run(len, ((),), hosts='localhost:1', num_proc=2)

    def test_old_names_of_arguments_warn_and_work(self):
        with self.assertWarnsRegex(DeprecationWarning, 'np is deprecated, use num_proc instead'):
            self.assertEqual(run(lambda: get_env_rank_and_size()[1], np=2), [2, 2])

    def test_tools_may_fill_in_the_arguments(self):
        options = _HorovodArgs()
        options.num_proc, options.command = 2, ['true']
        self.assertIsNone(_run(options))
        options.command = ['false']
        with self.assertRaisesRegex(RuntimeError, 'exit code 1'):
            _run(options)
        self.assertEqual((options.hosts, options.run_func), (None, None))

    def test_the_modules_run_hvdrun(self):
        for way in (['-m', 'horovod.runner'], ['-m', 'horovod.runner.launch'],
                    ['-c', 'import horovod.runner.launch as here; here.run_commandline()']):
            output = subprocess.run(
                [sys.executable, *way, '-np', '2', sys.executable, '-c',
                 'from horovod.common.basics import basics; basics.init(); '
                 'print(basics.size())'],
                text=True, check=True, stdout=subprocess.PIPE).stdout
            self.assertEqual(output, '2\n2\n')


class Helpers(unittest.TestCase):

    def test_hosts_are_read(self):
        self.assertEqual(hosts.parse_hosts('a:2,b:1'),
                         [hosts.HostInfo('a', 2), hosts.HostInfo.from_string('b:1')])
        self.assertEqual(hosts.HostInfo('a', 2).hostname, 'a')
        self.assertEqual(hosts.HostInfo('a', 2).slots, 2)
        for wrong in ('a', 'a:', ':1', 'a:b'):
            with self.assertRaisesRegex(ValueError, 'host:slots'):
                hosts.parse_hosts(wrong)
        with tempfile.NamedTemporaryFile('w') as file:
            file.write('a slots=2\n# none\n\nb slots = 1 # last\n')
            file.flush()
            self.assertEqual(hosts.parse_host_files(file.name), 'a:2,b:1')
            file.write('c 3\n')
            file.flush()
            with self.assertRaisesRegex(ValueError, 'line 5'):
                hosts.parse_host_files(file.name)

    def test_ranks_are_assigned_host_by_host(self):
        slots = hosts.get_host_assignments(hosts.parse_hosts('a:2,b:3'), 2, 4)
        self.assertEqual(slots, [hosts.SlotInfo('a', 0, 0, 0, 4, 2, 2),
                                 hosts.SlotInfo('a', 1, 1, 0, 4, 2, 2),
                                 hosts.SlotInfo('b', 2, 0, 1, 4, 2, 2),
                                 hosts.SlotInfo('b', 3, 1, 1, 4, 2, 2)])
        last = slots[-1]
        self.assertEqual((last.rank, last.size, last.local_rank, last.local_size,
                          last.cross_rank, last.cross_size), (3, 4, 1, 2, 1, 2))
        with self.assertRaisesRegex(ValueError, 'Requested more processes'):
            hosts.get_host_assignments(slots[:0], 1)

    def test_environment_tells_the_rank(self):
        unset = dict.fromkeys(('HOROVOD_RANK', 'HOROVOD_SIZE', 'SLURM_STEP_ID'))
        with util.env(**unset, OMPI_COMM_WORLD_RANK=3, OMPI_COMM_WORLD_SIZE=4):
            self.assertEqual(get_env_rank_and_size(), (3, 4))
        with util.env(**unset, SLURM_PROCID=0, SLURM_NTASKS=4):
            self.assertEqual(get_env_rank_and_size(), (0, 1))

    def test_small_helpers_return_the_right_values(self):
        self.assertTrue(util.gloo_built())
        self.assertIs(util.mpi_built(), importlib.util.find_spec('mpi4py') is not None)
        self.assertFalse(util.ddl_built() or util.ccl_built() or util.cuda_built()
                         or util.rocm_built())
        self.assertEqual(util.nccl_built(), 0)
        self.assertTrue(util.extension_available('torch'))
        self.assertFalse(util.extension_available('nonsense'))
        self.assertFalse(util.gpu_available('nonsense'))
        self.assertIs(util.gpu_available('torch'), __import__('torch').cuda.is_available())
        self.assertEqual(util.split_list([1, 2, 3, 4, 5], 3), [[1, 2], [3, 4], [5]])
        self.assertEqual([each for each in range(9) if util.num_rank_is_power_2(each)],
                         [1, 2, 4, 8])

    def test_exceptions_are_those_that_scripts_catch(self):
        self.assertTrue(HostsUpdatedInterrupt(skip_sync=True).skip_sync)
        self.assertTrue(issubclass(HorovodVersionMismatchError, ImportError))

    def test_version_is_a_release_of_horovods(self):
        self.assertEqual(horovod.__version__, '0.28.1')
