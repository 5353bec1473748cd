# SPDX-License-Identifier: Apache-2.0
"""DistributedOptimizer: N ranks, each with a part of a batch, train like one rank with the whole
batch."""

import copy
import gc
import warnings
import weakref

import torch

import horovod.torch as hvd
from case import Case
from device import DEVICE
from functions_test import OPTIMIZERS
from horovod.torch import optimizer as optimizers

ROWS = 4  # rows of the batch on each rank


def make_model(dtype=torch.float64):
    torch.manual_seed(7)
    return torch.nn.Sequential(torch.nn.Linear(5, 8), torch.nn.Tanh(),
                               torch.nn.Linear(8, 3)).to(DEVICE, dtype)


def batch(step, dtype=torch.float64):
    """Returns the rows of a step for all ranks; rank r uses the r-th ROWS of them."""
    generator = torch.Generator().manual_seed(100 + step)
    return torch.randn(ROWS * hvd.size(), 5, generator=generator, dtype=dtype).to(DEVICE)


def own(rows):
    return rows[ROWS * hvd.rank():ROWS * (hvd.rank() + 1)]


def loss_of(model, rows):
    return model(rows).pow(2).mean()


def train_alone(make, steps=3):
    """Trains on whole batches without hvd; returns the parameters."""
    model = make_model()
    optimizer = make(model.parameters())
    for step in range(steps):
        optimizer.zero_grad()
        loss_of(model, batch(step)).backward()
        optimizer.step()
    return list(model.parameters())


class Optimizer(Case):

    def wrap(self, make=OPTIMIZERS['SGD momentum'], **options):
        model = make_model()
        optimizer = hvd.DistributedOptimizer(
            make(model.parameters()), named_parameters=model.named_parameters(), **options)
        return model, optimizer

    def check(self, model, expected, tolerance=1e-10):
        for mine, right in zip(model.parameters(), expected):
            self.assertTrue(torch.allclose(mine, right, rtol=tolerance, atol=tolerance))
        mine = torch.cat([parameter.detach().flatten() for parameter in model.parameters()])
        for other in hvd.allgather(mine[None]):
            self.assertTrue(torch.equal(other, mine))

    def train(self, model, optimizer, steps=3):
        for step in range(steps):
            optimizer.zero_grad()
            loss_of(model, own(batch(step))).backward()
            optimizer.step()

    def test_every_optimizer_trains_as_one_rank_would(self):
        for name, make in OPTIMIZERS.items():
            with self.subTest(name=name):
                model, optimizer = self.wrap(make)
                self.train(model, optimizer)
                self.check(model, train_alone(make), 1e-8)

    def test_result_is_of_both_classes_and_keeps_the_state(self):
        model = make_model()
        inner = torch.optim.Adam(model.parameters(), 0.1)
        loss_of(model, batch(0)).backward()
        inner.step()
        optimizer = hvd.DistributedOptimizer(inner, model.named_parameters())
        self.assertIsInstance(optimizer, torch.optim.Adam)
        self.assertIsInstance(optimizer, optimizers._DistributedOptimizer)
        self.assertEqual(type(optimizer).__name__, 'Adam')
        first = next(model.parameters())
        self.assertEqual(float(optimizer.state[first]['step']), 1)

    def test_options_do_not_change_the_result(self):
        parameters = 4
        for options in (dict(groups=2), dict(groups=99), dict(groups=0),
                        dict(gradient_predivide_factor=float(hvd.size())),
                        dict(compression=hvd.Compression.none), dict(sparse_as_dense=True)):
            with self.subTest(options=options):
                model, optimizer = self.wrap(**options)
                self.assertEqual(len(list(model.parameters())), parameters)
                self.train(model, optimizer)
                self.check(model, train_alone(OPTIMIZERS['SGD momentum']))

    def test_groups_may_list_some_of_the_parameters(self):
        for named in (True, False):
            model = make_model()
            first, second, third, _ = model.parameters()
            optimizer = hvd.DistributedOptimizer(
                OPTIMIZERS['SGD momentum'](model.parameters()),
                model.named_parameters() if named else None,
                groups=[[second, first], [third]])
            self.train(model, optimizer)
            self.check(model, train_alone(OPTIMIZERS['SGD momentum']))

    def test_num_groups_warns_and_works(self):
        with self.assertWarns(DeprecationWarning):
            model, optimizer = self.wrap(num_groups=2)
        self.train(model, optimizer)
        self.check(model, train_alone(OPTIMIZERS['SGD momentum']))

    def test_compression_trains_nearly_the_same(self):
        for compression in (hvd.Compression.fp16, hvd.Compression.bf16):
            model, optimizer = self.wrap(compression=compression)
            self.train(model, optimizer)
            self.check(model, train_alone(OPTIMIZERS['SGD momentum']), 2e-2)

    def test_reduction_starts_while_backward_is_still_running(self):
        if hvd.size() == 1:
            self.skipTest('a lone rank exchanges nothing')
        model, optimizer = self.wrap()
        refusals = []

        def probe(*_):
            try:
                hvd.allreduce_async(torch.ones(3), name='2.bias')
            except ValueError as error:
                refusals.append(str(error))

        if hvd.rank() == 0:  # runs backward first, so the gradients that it submits stay in flight
            model[0].weight.register_hook(probe)
        else:
            hvd.barrier()
        loss_of(model, own(batch(0))).backward()
        if hvd.rank() == 0:
            self.assertIn('currently being processed', refusals[0])
            hvd.barrier()
        optimizer.step()
        self.check(model, train_alone(OPTIMIZERS['SGD momentum'], 1))

    def test_sum_adds_gradients(self):
        model, optimizer = self.wrap(OPTIMIZERS['SGD'], op=hvd.Sum)
        loss_of(model, own(batch(0))).backward()
        optimizer.synchronize()
        alone = make_model()
        loss_of(alone, batch(0)).backward()
        for mine, right in zip(model.parameters(), alone.parameters()):
            self.assertTrue(torch.allclose(mine.grad, right.grad * hvd.size()))

    def test_unnamed_parameters_work(self):
        model = make_model()
        optimizer = hvd.DistributedOptimizer(OPTIMIZERS['SGD momentum'](model.parameters()))
        self.train(model, optimizer)
        self.check(model, train_alone(OPTIMIZERS['SGD momentum']))

    def test_unnamed_parameters_of_two_optimizers_do_not_mix(self):
        models = [make_model(), make_model()]
        optimizers = [hvd.DistributedOptimizer(OPTIMIZERS['SGD momentum'](model.parameters()))
                      for model in models]
        for step in range(3):
            for optimizer in optimizers:
                optimizer.zero_grad()
            sum(loss_of(model, own(batch(step))) for model in models).backward()
            for optimizer in optimizers:
                optimizer.step()
        for model in models:
            self.check(model, train_alone(OPTIMIZERS['SGD momentum']))

    def test_several_backward_passes_make_a_step(self):
        model, optimizer = self.wrap(backward_passes_per_step=2)
        for step in range(3):
            optimizer.zero_grad()
            for part in own(batch(step)).split(ROWS // 2):
                (loss_of(model, part) / 2).backward()
            optimizer.step()
        self.check(model, train_alone(OPTIMIZERS['SGD momentum']))

    def test_number_of_passes_can_change_between_steps(self):
        model, optimizer = self.wrap()
        optimizer.set_backward_passes_per_step(ROWS)
        optimizer.zero_grad()
        for part in own(batch(0)).split(1):
            (loss_of(model, part) / ROWS).backward()
        optimizer.step()
        optimizer.set_backward_passes_per_step(1)
        optimizer.zero_grad()
        loss_of(model, own(batch(1))).backward()
        optimizer.step()
        self.check(model, train_alone(OPTIMIZERS['SGD momentum'], 2))

    def test_fewer_passes_than_announced_still_make_a_step(self):
        model, optimizer = self.wrap(backward_passes_per_step=5)
        self.train(model, optimizer)
        self.check(model, train_alone(OPTIMIZERS['SGD momentum']))

    def test_too_many_passes_are_refused(self):
        if hvd.size() == 1:
            self.skipTest('a lone rank exchanges nothing')
        model, optimizer = self.wrap()
        loss_of(model, own(batch(0))).backward()
        with self.assertRaisesRegex(AssertionError, 'backward_passes_per_step'):
            loss_of(model, own(batch(0))).backward()
        optimizer.synchronize()

    def test_zero_grad_takes_arguments(self):
        model, optimizer = self.wrap()
        self.train(model, optimizer, 1)
        optimizer.zero_grad(set_to_none=True)
        self.assertIsNone(next(model.parameters()).grad)
        loss_of(model, own(batch(1))).backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=False)
        self.assertEqual(next(model.parameters()).grad.abs().sum(), 0)

    def test_zero_grad_between_backward_and_step_is_refused(self):
        if hvd.size() == 1:
            self.skipTest('a lone rank exchanges nothing')
        model, optimizer = self.wrap()
        loss_of(model, own(batch(0))).backward()
        with self.assertRaisesRegex(AssertionError, 'prohibited'):
            optimizer.zero_grad()
        optimizer.step()
        optimizer.zero_grad()

    def test_gradients_can_be_clipped_before_the_step(self):
        model, optimizer = self.wrap()
        alone = make_model()
        inner = OPTIMIZERS['SGD momentum'](alone.parameters())
        for step in range(3):
            for each, stepper, rows in ((model, optimizer, own(batch(step))),
                                        (alone, inner, batch(step))):
                stepper.zero_grad()
                loss_of(each, rows).backward()
                if stepper is optimizer:
                    optimizer.synchronize()
                torch.nn.utils.clip_grad_norm_(each.parameters(), 0.05)
            with warnings.catch_warnings():
                warnings.simplefilter('error')
                with optimizer.skip_synchronize():
                    optimizer.step()
            inner.step()
        self.check(model, alone.parameters())

    def test_step_after_synchronize_warns(self):
        model, optimizer = self.wrap()
        loss_of(model, own(batch(0))).backward()
        optimizer.synchronize()
        with self.assertWarnsRegex(UserWarning, 'skip_synchronize'):
            optimizer.step()

    def test_closure_gradients_are_reduced_before_they_are_used(self):
        model, optimizer = self.wrap()
        for step in range(3):
            def closure(rows=own(batch(step))):
                optimizer.zero_grad()
                loss = loss_of(model, rows)
                loss.backward()
                return loss
            self.assertGreater(optimizer.step(closure).item(), 0)
        self.check(model, train_alone(OPTIMIZERS['SGD momentum']))

    def test_scheduler_changes_the_learning_rate(self):
        for schedule_first in (False, True):
            model = make_model()
            optimizer = OPTIMIZERS['SGD'](model.parameters())
            if schedule_first:
                scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.1)
            optimizer = hvd.DistributedOptimizer(optimizer, model.named_parameters())
            if not schedule_first:
                scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.1)
            with warnings.catch_warnings():
                warnings.simplefilter('ignore')
                self.train(model, optimizer, 1)
                scheduler.step()
            self.assertAlmostEqual(optimizer.param_groups[0]['lr'], 0.01)
            self.check(model, train_alone(OPTIMIZERS['SGD'], 1))

    def test_parameter_without_gradient_on_some_ranks_gets_the_average(self):
        used = torch.nn.Parameter(torch.ones(3))
        sometimes = torch.nn.Parameter(torch.ones(3))
        optimizer = hvd.DistributedOptimizer(torch.optim.SGD([used, sometimes], 1.0),
                                             [('used', used), ('sometimes', sometimes)])
        loss = used.sum() + (sometimes.sum() if hvd.rank() == 0 else 0)
        loss.backward()
        optimizer.step()
        self.assertTrue(torch.allclose(sometimes, torch.full((3,), 1 - 1 / hvd.size())))

    def test_frozen_parameters_stay_and_join_when_they_thaw(self):
        model = make_model()
        first = next(model.parameters())
        first.requires_grad_(False)
        before = first.clone()
        optimizer = hvd.DistributedOptimizer(
            torch.optim.SGD(model.parameters(), 0.1, weight_decay=0.1), model.named_parameters())
        self.train(model, optimizer, 2)
        self.assertTrue(torch.equal(first, before))
        first.requires_grad_(True)
        self.train(model, optimizer, 2)
        self.assertFalse(torch.equal(first, before))
        self.check(model, list(model.parameters()))

    def test_added_parameter_group_is_reduced(self):
        extra = torch.nn.Parameter(torch.ones(3, dtype=torch.float64))
        model, optimizer = self.wrap(OPTIMIZERS['SGD'])
        optimizer.add_param_group({'params': [extra], 'lr': 1.0})
        for _ in range(2):
            optimizer.zero_grad()
            (loss_of(model, own(batch(0))) + extra.sum() * hvd.rank()).backward()
            optimizer.step()
        mean = (hvd.size() - 1) / 2
        self.assertTrue(torch.allclose(extra, torch.full_like(extra, 1 - 2 * mean)))

    def test_sparse_gradients_are_reduced(self):
        for options in (dict(), dict(sparse_as_dense=True)):
            torch.manual_seed(3)
            table = torch.nn.Embedding(6, 2, sparse=True)
            before = table.weight.detach().clone()
            optimizer = hvd.DistributedOptimizer(torch.optim.SGD(table.parameters(), 1.0),
                                                 table.named_parameters(), **options)
            for _ in range(2):
                optimizer.zero_grad()
                table(torch.tensor([hvd.rank() % 6, 5])).sum().backward()
                optimizer.step()
            counts = torch.zeros(6)
            for rank in range(hvd.size()):
                counts[rank % 6] += 1
                counts[5] += 1
            right = before - 2 * (counts / hvd.size())[:, None]
            self.assertTrue(torch.allclose(table.weight, right))

    def test_sparse_gradients_are_sparse_again_after_they_travelled_as_dense_ones(self):
        mine = [hvd.rank() % 6, 5]
        for options in (dict(), dict(groups=1), dict(compression=hvd.Compression.fp16)):
            with self.subTest(options=options):
                torch.manual_seed(3)
                table = torch.nn.Embedding(6, 2, sparse=True)
                before = table.weight.detach().clone()
                optimizer = hvd.DistributedOptimizer(
                    torch.optim.SparseAdam(list(table.parameters()), 1.0),
                    table.named_parameters(), sparse_as_dense=True, **options)
                table(torch.tensor(mine)).sum().backward()
                optimizer.synchronize()
                gradient = table.weight.grad.coalesce()
                used = {index for each in hvd.allgather_object(mine) for index in each}
                self.assertEqual(gradient.indices().tolist(), [sorted(used)])
                self.assertEqual(gradient.values().shape, (len(used), 2))
                with optimizer.skip_synchronize():
                    optimizer.step()  # SparseAdam would raise an error for dense gradients
                moved = (table.weight.detach() - before).abs().sum(1) > 0
                self.assertEqual(moved.nonzero().flatten().tolist(), sorted(used))

    def test_a_dropped_optimizer_releases_its_parameters(self):
        model, optimizer = self.wrap(OPTIMIZERS['SGD'])
        self.train(model, optimizer, 1)
        dropped = weakref.ref(optimizer)
        del optimizer
        gc.collect()
        self.assertIsNone(dropped())
        optimizer = hvd.DistributedOptimizer(OPTIMIZERS['SGD'](model.parameters()),
                                             model.named_parameters())
        for step in (1, 2):
            optimizer.zero_grad()
            loss_of(model, own(batch(step))).backward()
            optimizer.step()
        self.check(model, train_alone(OPTIMIZERS['SGD'], 3))

    def test_a_state_dict_can_be_saved_and_loaded(self):
        model, optimizer = self.wrap()
        self.train(model, optimizer, 1)
        saved = copy.deepcopy(optimizer.state_dict())
        again, second = self.wrap()
        again.load_state_dict(model.state_dict())
        second.load_state_dict(saved)
        for each, stepper in ((model, optimizer), (again, second)):
            stepper.zero_grad()
            loss_of(each, own(batch(1))).backward()
            stepper.step()
        self.check(again, list(model.parameters()))

    def test_step_hooks_run_once(self):
        if not hasattr(torch.optim.Optimizer, 'register_step_post_hook'):
            self.skipTest('this torch has no step hooks')
        model, optimizer = self.wrap()
        calls = []
        optimizer.register_step_post_hook(lambda *_: calls.append(1))
        optimizer.load_state_dict(optimizer.state_dict())
        self.train(model, optimizer, 2)
        self.assertEqual(len(calls), 2)

    def test_wrong_arguments_are_refused(self):
        model = make_model()
        named = list(model.named_parameters())
        first = named[0][1]
        for error, options in (
                (ValueError, dict(named_parameters=[('same', p) for _, p in named])),
                (ValueError, dict(named_parameters=named[:1])),
                (ValueError, dict(named_parameters=list(model.parameters()))),
                (ValueError, dict(gradient_predivide_factor=2.0, op=hvd.Sum)),
                (ValueError, dict(groups=-1)), (ValueError, dict(groups='all')),
                (ValueError, dict(groups=[[first], [first]])),
                (ValueError, dict(groups=[['weight']])),
                (ValueError, dict(backward_passes_per_step=0))):
            with self.subTest(options=list(options)), self.assertRaises(error):
                hvd.DistributedOptimizer(OPTIMIZERS['SGD'](model.parameters()), **options)
        wrapped = hvd.DistributedOptimizer(OPTIMIZERS['SGD'](model.parameters()))
        with self.assertRaises(ValueError):
            hvd.DistributedOptimizer(wrapped)
