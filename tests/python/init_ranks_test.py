# SPDX-License-Identifier: Apache-2.0
"""init with a list of ranks: the job has some of the ranks that the launcher started."""

import torch

import horovod.torch as hvd
from process_sets_test import JobCase


class InitRanks(JobCase):

    def check_job_of(self, ranks):
        """Checks a job that consists of these ranks, in this order. They are given by the numbers
        that the launcher has given them. The other ranks do not take part."""
        hvd.init()
        own = hvd.rank()
        hvd.barrier()
        hvd.shutdown()
        if own in ranks:
            hvd.init(comm=ranks)
            self.assertEqual((hvd.rank(), hvd.size()), (ranks.index(own), len(ranks)))
            self.assertEqual(hvd.global_process_set.ranks, list(range(len(ranks))))
            self.assertEqual(hvd.allgather(torch.tensor([own])).tolist(), list(ranks))
            self.assertEqual(hvd.allreduce(torch.ones(1), op=hvd.Sum).item(), len(ranks))
            numbers = hvd.allgather_object((hvd.local_rank(), hvd.local_size(),
                                            hvd.cross_rank(), hvd.cross_size()))
            self.assertEqual(len({(local, cross) for local, _, cross, _ in numbers}), len(ranks))
            hvd.barrier()
            hvd.shutdown()
        hvd.init()
        self.assertEqual(hvd.rank(), own)
        self.assertEqual(hvd.allreduce(torch.ones(1), op=hvd.Sum).item(), hvd.size())

    def test_all_ranks_may_be_listed(self):
        everyone = list(range(hvd.size()))
        self.check_job_of(everyone)
        self.check_job_of(tuple(everyone))

    def test_empty_list_means_all_ranks(self):
        size = hvd.size()
        hvd.barrier()
        hvd.shutdown()
        hvd.init(comm=[])
        self.assertEqual(hvd.size(), size)

    def test_some_ranks_make_a_job_without_the_others(self):
        self.need(2)
        for ranks in ([0], [hvd.size() - 1], list(range(1, hvd.size())),
                      list(range(0, hvd.size(), 2))):
            self.check_job_of(ranks)

    def test_order_of_the_list_is_the_order_of_the_ranks(self):
        self.check_job_of(list(reversed(range(hvd.size()))))

    def test_jobs_of_different_ranks_run_at_the_same_time(self):
        self.need(2)
        own, size = hvd.rank(), hvd.size()
        hvd.barrier()
        hvd.shutdown()
        mine = list(range(own % 2, size, 2))
        hvd.init(comm=mine)
        self.assertEqual(hvd.allgather(torch.tensor([own])).tolist(), mine)
        self.assertEqual(hvd.allreduce(torch.full((1000,), 1.0 + own), op=hvd.Max)[0].item(),
                         1 + mine[-1])
        hvd.barrier()
        hvd.shutdown()
        hvd.init()

    def test_process_sets_are_numbered_in_the_smaller_job(self):
        self.need(3)
        own = hvd.rank()
        hvd.barrier()
        hvd.shutdown()
        if own > 0:
            first = hvd.ProcessSet([0])
            hvd.init(comm=list(range(1, self.launched)), process_sets=[first])
            self.assertEqual(first.included(), own == 1)
            hvd.barrier()
            hvd.shutdown()
        hvd.init()

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.launched = hvd.size()

    def test_an_argument_that_is_not_a_list_of_ranks_is_rejected(self):
        hvd.barrier()
        hvd.shutdown()
        for wrong in (3, 'all', [0.5], object()):
            with self.subTest(wrong=wrong), self.assertRaisesRegex(
                    ValueError, 'Expected list of rank integers or mpi4py.MPI.Comm'):
                hvd.init(comm=wrong)
            self.assertFalse(hvd.is_initialized())
        for wrong in ([-1], [0, 0], list(range(self.launched + 1)), [10**6]):
            with self.subTest(wrong=wrong), self.assertRaisesRegex(ValueError, 'failed'):
                hvd.init(comm=wrong)
            self.assertFalse(hvd.is_initialized())
        hvd.init()
