# SPDX-License-Identifier: Apache-2.0
"""Scripts that use MPI: communicators for init and for process sets. Runs under mpirun."""

import os
import unittest
import unittest.mock

try:
    from mpi4py import MPI  # before init: MPI and hvd use the same PMIx server
except ImportError:
    MPI = None
import torch

import horovod.torch as hvd
from process_sets_test import JobCase, table


need_mpi = unittest.skipIf(MPI is None, 'there is no mpi4py')


def end():
    hvd.barrier()
    hvd.shutdown()


@need_mpi
class Communicators(JobCase):

    def setUp(self):
        self.world = MPI.COMM_WORLD
        self.parity = self.world.Split(self.world.rank % 2, self.world.rank)
        end()

    def tearDown(self):
        if hvd.is_initialized():
            end()
        self.world.barrier()
        hvd.init()

    def check_job_of(self, communicator):
        hvd.init(comm=communicator)
        self.assertEqual((hvd.rank(), hvd.size()), (communicator.rank, communicator.size))
        self.assertIs(hvd.global_process_set.mpi_comm, communicator)
        members = communicator.allgather(self.world.rank)
        self.assertEqual(hvd.allgather(torch.tensor([self.world.rank])).tolist(), members)

    def test_job_of_all_ranks(self):
        self.check_job_of(self.world)

    def test_order_of_the_communicator_is_the_order_of_the_ranks(self):
        self.check_job_of(self.world.Split(0, -self.world.rank))

    def test_each_part_of_a_split_is_a_job(self):
        self.check_job_of(self.parity)

    def test_lists_of_ranks(self):
        for ranks in (list(range(self.world.size))[::-1],
                      [rank for rank in range(self.world.size) if rank % 2 == self.world.rank % 2]):
            hvd.init(comm=ranks)
            self.assertEqual((hvd.rank(), hvd.size()), (ranks.index(self.world.rank), len(ranks)))
            self.assertEqual(hvd.allgather(torch.tensor([self.world.rank])).tolist(), ranks)
            end()

    def test_early_messages_are_kept_for_the_next_start(self):
        for _ in range(3):
            for last in range(1, self.world.size):
                if self.world.rank in (0, last):
                    hvd.init(comm=[0, last])
                    self.assertEqual(hvd.size(), 2)
                    end()
            hvd.init()
            self.assertEqual((hvd.rank(), hvd.size()), (self.world.rank, self.world.size))
            end()

    def test_libhvd_does_not_use_pmix_beside_mpi(self):
        with unittest.mock.patch.dict(os.environ, {'HVD_BOOT_HELPER': '/bin/false'}):
            hvd.init()
            self.assertEqual(hvd.size(), self.world.size)
            end()
            self.check_job_of(self.world)

    def test_a_missing_rank_is_an_error(self):
        copy, last = self.world.Dup(), self.world.size - 1
        missed = 'did not start within 2 s' + (f': rank {last}' if self.world.rank == 0 else '')
        with unittest.mock.patch.dict(os.environ, {'HVD_START_TIMEOUT': '2'}):
            if self.world.rank != last:
                with self.assertRaisesRegex(ValueError, missed):
                    hvd.init(comm=copy)

    def test_wrong_lists_are_refused(self):
        with self.assertRaisesRegex(ValueError, f'there is no rank {self.world.size}'):
            hvd.init(comm=[self.world.rank, self.world.size])
        with self.assertRaisesRegex(ValueError, 'twice'):
            hvd.init(comm=[self.world.rank, self.world.rank])
        with self.assertRaisesRegex(ValueError, f'rank {self.world.rank} is not in the list of 1'):
            hvd.init(comm=[(self.world.rank + 1) % self.world.size])

    def test_an_intercommunicator_is_rejected(self):
        leader = 1 - self.world.rank % 2
        other = self.parity.Create_intercomm(0, self.world, leader)
        with self.assertRaisesRegex(ValueError, 'expected an intracommunicator'):
            hvd.init(comm=other)
        other.Free()

    def test_process_sets_of_communicators(self):
        size = self.world.size
        sets = [hvd.ProcessSet(self.parity)]
        if size > 2:
            sets.append(hvd.ProcessSet([0]))
        if size > 1:
            hvd.init(comm=self.world, process_sets=sets)
            right = {0: list(range(size)), 1: list(range(0, size, 2)),
                     2: list(range(1, size, 2))}
            if size > 2:
                right[3] = [0]
            self.assertEqual(table(), right)
            mine = sets[0]
            self.assertEqual(mine.process_set_id, 1 + self.world.rank % 2)
            self.assertEqual(mine.ranks, right[mine.process_set_id])
            self.assertEqual(hvd.allgather(torch.tensor([hvd.rank()]), process_set=mine).tolist(),
                             mine.ranks)

    def test_set_that_equals_a_communicator_is_a_duplicate(self):
        evens = hvd.ProcessSet(range(0, self.world.size, 2))
        sets = [hvd.ProcessSet(self.world.Dup()), hvd.ProcessSet(self.parity), evens]
        with self.assertRaisesRegex(ValueError, 'entry number 0 is a duplicate'):
            hvd.init(comm=self.world, process_sets=sets)
        self.assertTrue(hvd.is_initialized())

    def test_process_sets_of_communicators_need_a_communicator_of_the_job(self):
        for comm in (None, [0]):
            with self.assertRaises(NotImplementedError):
                hvd.init(comm=comm, process_sets=[hvd.ProcessSet(self.parity)])
        hvd.init(process_sets='dynamic')
        with self.assertRaises(NotImplementedError):
            hvd.add_process_set(hvd.ProcessSet(self.parity))

    def test_a_null_communicator_is_rejected(self):
        with self.assertRaisesRegex(ValueError, 'COMM_NULL'):
            hvd.init(comm=MPI.COMM_NULL)

    def test_mpi_that_does_not_know_the_launcher_is_refused(self):
        environment = {'HVD_LAUNCH': '1', 'HOROVOD_SIZE': str(self.world.size + 1)}
        with unittest.mock.patch.dict(os.environ, environment):
            with self.assertRaisesRegex(ValueError, 'does not know the launcher'):
                hvd.init(comm=self.world)
            self.assertFalse(hvd.mpi_enabled())


@need_mpi
class Threads(JobCase):

    def test_support_is_that_of_the_running_mpi(self):
        multiple = MPI.Query_thread() == MPI.THREAD_MULTIPLE
        self.assertTrue(hvd.mpi_built())
        self.assertTrue(hvd.mpi_enabled())
        self.assertIs(hvd.mpi_threads_supported(), multiple)
        hvd.barrier()
        hvd.shutdown()
        with self.assertRaisesRegex(ValueError, 'use hvd.init'):
            hvd.mpi_threads_supported()
        hvd.init()
