# SPDX-License-Identifier: Apache-2.0
"""Features that current models and scripts use: torch.compile, bfloat16, and data loaders whose
workers are forked or spawned."""

import multiprocessing
import os
import unittest

import torch

import horovod.torch as hvd
from case import Case
from functions_test import OPTIMIZERS
from horovod.common.exceptions import HorovodInternalError
from horovod.torch.compression import Compressor, FP16Compressor, NoneCompressor
from inputs import stacked, values
from ranks import own_part
from optimizer_test import batch, loss_of, make_model, own, train_alone

CAN_COMPILE = hasattr(torch, 'compile')


class Numbers(torch.utils.data.Dataset):
    """A data set. To unpickle it, a spawned worker imports this module, and with it
    horovod.torch."""

    def __len__(self):
        return 8

    def __getitem__(self, index):
        return torch.tensor(float(index))


def begin_again(results):
    """Tries an allreduce in a process that a rank has spawned; puts the result into the queue."""
    try:
        hvd.allreduce(torch.ones(1))
        results.put('reduced')
    except (ValueError, HorovodInternalError) as error:
        results.put(str(error))


class Workers(Case):

    def check_loader(self, **options):
        handle = hvd.allreduce_async(torch.ones(3), op=hvd.Sum)
        loader = torch.utils.data.DataLoader(Numbers(), 4, num_workers=2, **options)
        for _ in range(2):
            batches = [hvd.allreduce(part, op=hvd.Max).tolist() for part in loader]
            self.assertEqual(batches, [[0.0, 1.0, 2.0, 3.0], [4.0, 5.0, 6.0, 7.0]])
        self.assertEqual(hvd.synchronize(handle).tolist(), [hvd.size()] * 3)

    @unittest.skipIf('libasan' in os.environ.get('LD_PRELOAD', ''),
                     "the sanitizer's allocator may be locked for ever in a forked child")
    def test_workers_of_a_data_loader_may_fork(self):
        self.check_loader(multiprocessing_context='fork')

    def test_workers_of_a_data_loader_may_be_spawned(self):
        self.check_loader(multiprocessing_context='spawn', persistent_workers=True)

    def test_spawned_process_is_no_rank(self):
        context = multiprocessing.get_context('spawn')
        results = context.Queue()
        process = context.Process(target=begin_again, args=(results,))
        process.start()
        process.join()
        self.assertEqual(process.exitcode, 0)
        self.assertIn('has not been initialized', results.get())


class Today(Case):

    @unittest.skipUnless(CAN_COMPILE, 'this torch has no torch.compile')
    def test_compiled_models_train_as_others(self):
        model = make_model()
        optimizer = hvd.DistributedOptimizer(OPTIMIZERS['SGD momentum'](model.parameters()),
                                             model.named_parameters())
        compiled = torch.compile(model, backend='aot_eager')
        hvd.broadcast_parameters(compiled.state_dict(), root_rank=0)
        for step in range(3):
            optimizer.zero_grad()
            loss_of(compiled, own(batch(step))).backward()
            optimizer.step()
        for mine, right in zip(model.parameters(), train_alone(OPTIMIZERS['SGD momentum'])):
            self.assertTrue(torch.allclose(mine, right))

    @unittest.skipUnless(CAN_COMPILE, 'this torch has no torch.compile')
    def test_compiled_functions_may_call_collectives(self):
        def double_of_sum(tensor):
            return hvd.allreduce(tensor * 2, op=hvd.Sum, name='compiled') + 1

        mine = values(hvd.rank(), (5,)).requires_grad_()
        result = torch.compile(double_of_sum, backend='aot_eager')(mine)
        total = stacked(hvd.size(), (5,)).sum(0)
        self.check(result.detach(), 2 * total + 1)
        result.sum().backward()
        self.check(mine.grad, torch.full((5,), 2.0 * hvd.size()))

    @unittest.skipUnless(CAN_COMPILE, 'this torch has no torch.compile')
    def test_compiled_models_may_synchronise_batch_norm(self):
        torch.manual_seed(1)
        model = torch.nn.Sequential(torch.nn.Linear(4, 3), hvd.SyncBatchNorm(3))
        optimizer = hvd.DistributedOptimizer(OPTIMIZERS['SGD'](model.parameters()),
                                             model.named_parameters())
        mine = values(hvd.rank(), (6, 4))
        expected = model(mine)
        compiled = torch.compile(model, backend='aot_eager')
        self.assertTrue(torch.allclose(compiled(mine), expected, atol=1e-5))
        compiled(mine).pow(2).sum().backward()
        optimizer.step()
        self.assertTrue(torch.isfinite(model[0].weight).all())

    def test_bfloat16_models_train(self):
        model = make_model(torch.bfloat16)
        optimizer = hvd.DistributedOptimizer(torch.optim.Adam(model.parameters(), 0.01),
                                             model.named_parameters())
        losses = []
        for step in range(20):
            optimizer.zero_grad()
            loss = loss_of(model, own(batch(0, torch.bfloat16)))
            loss.backward()
            optimizer.step()
            losses.append(hvd.allreduce(loss.detach().float(), name='loss').item())
        self.assertLess(losses[-1], 0.7 * losses[0])
        hvd.broadcast_optimizer_state(optimizer, root_rank=0)
        for parameter in model.parameters():
            for other in hvd.allgather(parameter.detach()[None]):
                self.assertEqual(other.tolist(), parameter.tolist())

    def test_autocast_trains(self):
        model = make_model(torch.float32)
        optimizer = hvd.DistributedOptimizer(OPTIMIZERS['SGD'](model.parameters()),
                                             model.named_parameters())
        with torch.autocast('cpu', torch.bfloat16):
            loss_of(model, own(batch(0, torch.float32))).backward()
        optimizer.step()
        alone = make_model(torch.float32)
        plain = OPTIMIZERS['SGD'](alone.parameters())
        loss_of(alone, batch(0, torch.float32)).backward()
        plain.step()
        for mine, right in zip(model.parameters(), alone.parameters()):
            self.assertTrue(torch.allclose(mine, right, 1e-2, 1e-2))

    def test_bfloat16_sparse_tensors_are_reduced(self):
        mine = torch.eye(4).bfloat16() * (hvd.rank() + 1)
        total = hvd.sparse_allreduce_async(mine.to_sparse(), name='sparse', op=hvd.Sum)()
        ranks = sum(rank + 1 for rank in range(hvd.size()))
        self.assertEqual(total.to_dense().float().tolist(), (torch.eye(4) * ranks).tolist())


class Names(Case):
    """Functions that no other test calls."""

    def test_broadcast_and_reducescatter_have_handles(self):
        mine = values(hvd.rank(), (3, 4))
        given = hvd.synchronize(hvd.broadcast_async(mine, hvd.size() - 1))
        self.check_same(given, values(hvd.size() - 1, (3, 4)))
        whole = values(hvd.rank(), (5, 2))
        part = hvd.synchronize(hvd.reducescatter_async(whole, op=hvd.Sum))
        self.check_same(part, own_part(stacked(hvd.size(), (5, 2)).sum(0)))

    def test_group_in_place_has_a_handle(self):
        mine = [values(hvd.rank(), (3,), salt=salt) for salt in range(2)]
        results = hvd.synchronize(hvd.grouped_allreduce_async_(mine, op=hvd.Sum))
        for salt, (result, own_tensor) in enumerate(zip(results, mine)):
            self.assertIs(result, own_tensor)
            self.check(result, stacked(hvd.size(), (3,), salt=salt).sum(0))

    def test_compressors_go_both_ways(self):
        tensor = torch.tensor([1.5, -2.0])
        for compressor, dtype in ((NoneCompressor, torch.float32),
                                  (FP16Compressor, torch.float16)):
            self.assertTrue(issubclass(compressor, Compressor))
            compressed, ctx = compressor.compress(tensor)
            self.assertEqual(compressed.dtype, dtype)
            self.check_same(compressor.decompress(compressed, ctx), tensor)
