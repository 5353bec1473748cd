# SPDX-License-Identifier: Apache-2.0
"""Training with the backend hvd gives the result of one process with the whole batch."""

import contextlib
import copy
import unittest
from datetime import timedelta

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from distributed_case import IS_ALONE, Case, gloo_group
from inputs import values

BATCH = 3  # rows on each rank


class Branches(torch.nn.Module):
    """A model that uses one of two layers."""

    def __init__(self):
        super().__init__()
        self.used, self.unused = torch.nn.Linear(4, 2), torch.nn.Linear(4, 2)

    def forward(self, inputs):
        return self.used(inputs)


def layers():
    return torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))


class TrainingCase(Case):

    def setUp(self):
        super().setUp()
        torch.manual_seed(self.rank)  # the ranks begin with different parameters; those of rank 0 count

    def rows(self, step, ranks=None):
        return torch.cat([values(rank, (BATCH, 4), salt=step) for rank in
                          (range(self.size) if ranks is None else ranks)])

    def of_rank_0(self, model):
        """Returns a copy of rank 0's model, on all ranks."""
        model = copy.deepcopy(model)
        for each in model.state_dict().values():
            dist.broadcast(each, 0)
        return model

    def train(self, model, optimizer, steps, ranks=None):
        for step in range(steps):
            optimizer.zero_grad()
            model(self.rows(step, ranks)).pow(2).mean().backward()
            optimizer.step()

    def check_parameters(self, model, expected):
        for one, other in zip(model.parameters(), expected.parameters()):
            torch.testing.assert_close(one.detach(), other.detach(), rtol=1e-4, atol=1e-6)

    def check_ranks_agree(self, model):
        flat = torch.cat([each.detach().flatten() for each in model.parameters()])
        gathered = [torch.zeros_like(flat) for _ in range(self.size)]
        dist.all_gather(gathered, flat)
        for each in gathered:
            self.assertTrue(torch.equal(each, gathered[0]))


class DataParallel(TrainingCase):

    def check_training(self, make=layers, **options):
        model = make()
        whole = self.of_rank_0(model)
        parallel = DistributedDataParallel(model, **options)
        self.train(parallel, torch.optim.SGD(parallel.parameters(), 0.1, momentum=0.9), 3,
                   [self.rank])
        self.train(whole, torch.optim.SGD(whole.parameters(), 0.1, momentum=0.9), 3)
        self.check_parameters(model, whole)
        self.check_ranks_agree(model)

    def test_parameters_are_those_of_one_process(self):
        self.check_training()

    def test_gradients_in_buckets(self):
        self.check_training(gradient_as_bucket_view=True)

    def test_many_buckets(self):
        self.check_training(bucket_cap_mb=1e-5)

    def test_unused_parameters(self):
        self.check_training(Branches, find_unused_parameters=True)

    def test_a_static_graph(self):
        self.check_training(static_graph=True)

    def test_a_group_of_its_own(self):
        self.check_training(process_group=dist.new_group())

    def test_buffers_come_from_rank_0(self):
        model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.BatchNorm1d(8))
        parallel = DistributedDataParallel(model)
        for step in range(2):
            parallel(self.rows(step, [self.rank])).sum().backward()
        parallel(self.rows(2, [0]))  # broadcasts the buffers, then updates them equally on all ranks
        running = [torch.zeros(8) for _ in range(self.size)]
        dist.all_gather(running, model[1].running_mean)
        for each in running:
            self.assertTrue(torch.equal(each, running[0]))

    def test_gradients_are_summed_up_before_they_are_exchanged(self):
        model = layers()
        whole = self.of_rank_0(model)
        parallel = DistributedDataParallel(model)
        for step in range(3):
            with parallel.no_sync() if step < 2 else contextlib.nullcontext():
                parallel(self.rows(step, [self.rank])).pow(2).mean().backward()
            whole(self.rows(step)).pow(2).mean().backward()
        for one, other in zip(model.parameters(), whole.parameters()):
            torch.testing.assert_close(one.grad, other.grad, rtol=1e-4, atol=1e-6)

    def test_ranks_with_fewer_batches_join(self):
        model = layers()
        parallel = DistributedDataParallel(model)
        optimizer = torch.optim.SGD(parallel.parameters(), 0.1)
        with parallel.join():
            self.train(parallel, optimizer, 2 + self.rank, [self.rank])
        self.check_ranks_agree(model)

    def test_hooks_compress(self):
        from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
        for hook in (default_hooks.allreduce_hook, default_hooks.fp16_compress_hook):
            model = layers()
            whole = self.of_rank_0(model)
            parallel = DistributedDataParallel(model)
            parallel.register_comm_hook(None, hook)
            parallel(self.rows(0, [self.rank])).pow(2).mean().backward()
            whole(self.rows(0)).pow(2).mean().backward()
            for one, other in zip(model.parameters(), whole.parameters()):
                torch.testing.assert_close(one.grad, other.grad, rtol=1e-2, atol=1e-2)

    @unittest.skipUnless(IS_ALONE, "the timeout of torch's own group cannot be changed")
    def test_a_failure_is_raised_by_backward(self):
        if self.size == 1:
            self.skipTest('no other rank to be late')
        group = dist.new_group(list(range(self.size)))
        parallel = DistributedDataParallel(layers(), process_group=group)
        loss = parallel(self.rows(0, [self.rank])).mean()
        if self.rank == 0:
            group._set_default_timeout(timedelta(seconds=0.1))
            with self.assertRaisesRegex(RuntimeError, 'all_reduce.*: Timed out after 0.1 s'):
                loss.backward()

    def test_powersgd_trains_as_over_gloo(self):
        """Compares training over hvd and over Gloo with the hook PowerSGD, whose callbacks make
        calls and wait for their futures. Over Gloo the callbacks of different buckets would mix up
        their calls, so there one bucket is reduced at a time."""
        from torch.distributed.algorithms.ddp_comm_hooks import powerSGD_hook

        def one_at_a_time(state, bucket):
            future = powerSGD_hook.powerSGD_hook(state, bucket)
            future.wait()
            return future

        gloo = gloo_group()
        models = []
        for group, hook in ((None, powerSGD_hook.powerSGD_hook), (gloo, one_at_a_time)):
            torch.manual_seed(0)
            model = torch.nn.Sequential(*(torch.nn.Linear(64, 64) for _ in range(4)))
            parallel = DistributedDataParallel(model, process_group=group, bucket_cap_mb=0.02)
            parallel.register_comm_hook(powerSGD_hook.PowerSGDState(
                group, matrix_approximation_rank=2, start_powerSGD_iter=2), hook)
            optimizer = torch.optim.SGD(parallel.parameters(), 0.1)
            for step in range(5):
                optimizer.zero_grad()
                torch.manual_seed(100 * step + self.rank)
                parallel(torch.randn(8, 64)).pow(2).mean().backward()
                optimizer.step()
            models.append(model)
        self.check_ranks_agree(models[0])
        for one, other in zip(*(model.parameters() for model in models)):
            torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-5)


class ShardedOptimizer(TrainingCase):

    def test_parameters_are_those_of_one_process(self):
        from torch.distributed.optim import ZeroRedundancyOptimizer
        model = layers()
        whole = self.of_rank_0(model)
        parallel = DistributedDataParallel(model)
        sharded = ZeroRedundancyOptimizer(parallel.parameters(), torch.optim.Adam, lr=0.05)
        self.train(parallel, sharded, 3, [self.rank])
        self.train(whole, torch.optim.Adam(whole.parameters(), 0.05), 3)
        self.check_parameters(model, whole)
        sharded.consolidate_state_dict(0)
        if self.rank == 0:
            self.assertEqual(len(sharded.state_dict()['state']), len(list(model.parameters())))
