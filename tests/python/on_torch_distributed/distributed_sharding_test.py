# SPDX-License-Identifier: Apache-2.0
"""Features of newer releases of torch that use process groups, with the backend hvd: sharded models
and tensors, and compiled models."""

import torch
import torch.distributed as dist

from distributed_training_test import BATCH, TrainingCase, layers

STEPS = 3


class ShardedModels(TrainingCase):

    def start(self):
        """Returns a model, and the same model after training with the whole batch."""
        model = self.of_rank_0(layers())
        whole = self.of_rank_0(model)
        self.train(whole, torch.optim.SGD(whole.parameters(), 0.1, momentum=0.9), STEPS)
        return model, whole

    def check_training(self, sharded, whole, summon):
        optimizer = torch.optim.SGD(sharded.parameters(), 0.1, momentum=0.9)
        self.train(sharded, optimizer, STEPS, [self.rank])
        for one, other in zip(summon(sharded), whole.parameters()):
            torch.testing.assert_close(one, other.detach(), rtol=1e-4, atol=1e-6)

    def test_fully_sharded_data_parallel(self):
        try:
            from torch.distributed.fsdp import FullyShardedDataParallel
            from torch.distributed.device_mesh import init_device_mesh  # noqa: F401
        except Exception as error:  # Debian's torch fails on Python's dataclasses
            self.skipTest(f'this torch has no FSDP for CPUs: {type(error).__name__}')
        model, whole = self.start()
        sharded = FullyShardedDataParallel(model, device_id=torch.device('cpu'))

        def summon(module):
            with FullyShardedDataParallel.summon_full_params(module):
                return [each.detach().clone() for each in module.parameters()]

        self.check_training(sharded, whole, summon)

    def test_fully_shard(self):
        try:
            from torch.distributed.fsdp import fully_shard
        except Exception as error:
            self.skipTest(f'this torch has no fully_shard: {type(error).__name__}')
        from torch.distributed.device_mesh import init_device_mesh
        model, whole = self.start()
        mesh = init_device_mesh('cpu', (self.size,))
        for layer in (model[0], model[2], model):
            fully_shard(layer, mesh=mesh)
        self.check_training(model, whole, lambda module: [
            each.full_tensor().detach() for each in module.parameters()])
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        self.assertTrue(torch.isfinite(norm.full_tensor()))


class DistributedTensors(TrainingCase):

    def test_distributed_tensors_can_be_computed_with(self):
        try:
            from torch.distributed.tensor import Replicate, Shard, distribute_tensor
        except ImportError:
            self.skipTest('this torch has no torch.distributed.tensor')
        from torch.distributed.device_mesh import init_device_mesh
        mesh = init_device_mesh('cpu', (self.size,))
        left, right = self.rows(0), self.rows(1).t().contiguous()
        product = left @ right
        sharded = distribute_tensor(left, mesh, [Shard(0)])
        self.assertEqual(sharded.to_local().shape, (BATCH, 4))
        for other in (distribute_tensor(right, mesh, [Replicate()]),
                      distribute_tensor(right, mesh, [Shard(0)])):
            self.check_same((sharded @ other).full_tensor(), product)
        turned = sharded.redistribute(mesh, [Shard(1)])
        self.check_same(turned.full_tensor(), left)
        self.check_same(sharded.sum(0).full_tensor(), left.sum(0))


class Compiled(TrainingCase):

    def test_a_compiled_model_in_ddp(self):
        if not hasattr(torch, 'compile'):
            self.skipTest('this torch has no compiler')
        from torch.nn.parallel import DistributedDataParallel
        model = layers()
        whole = self.of_rank_0(model)
        parallel = torch.compile(DistributedDataParallel(model), backend='aot_eager')
        self.train(parallel, torch.optim.SGD(parallel.parameters(), 0.1), STEPS, [self.rank])
        self.train(whole, torch.optim.SGD(whole.parameters(), 0.1), STEPS)
        self.check_parameters(model, whole)
        self.check_ranks_agree(model)

    def test_a_compiled_function_with_a_collective(self):
        try:
            from torch.distributed._functional_collectives import all_reduce
            torch.compile
        except (ImportError, AttributeError):
            self.skipTest('this torch cannot compile collectives')

        @torch.compile(backend='aot_eager')
        def function(tensor):
            return all_reduce(tensor * 2, 'sum', dist.group.WORLD) + 1

        self.check_same(function(self.mine((3,))), 2 * self.whole((3,)).sum(0) + 1)
