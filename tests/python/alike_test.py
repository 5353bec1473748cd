# SPDX-License-Identifier: Apache-2.0
"""The warning that ranks started from different parameters: it comes if the script forgets to
broadcast them, once, on one rank, and in no other case."""

import linecache
import os
import unittest.mock
import warnings

import torch

import horovod.torch as hvd
from case import Case
from device import DEVICE
from horovod.common.alike import StartCheck
from horovod.common import requests
from horovod.torch.checksum import checksum

PARTS = 'started from different parameters'


def make_model(seed):
    torch.manual_seed(seed)
    return torch.nn.Sequential(torch.nn.Linear(5, 8), torch.nn.Linear(8, 3)).to(DEVICE)


class Alike(Case):

    def warned(self, model, steps=2, joins=False, prepare=lambda model: None, schedules=False, **options):
        """Trains, as in a new job, and returns how often this rank has warned."""
        requests.restart_all_names()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter('always')
            optimizer = hvd.DistributedOptimizer(
                torch.optim.SGD(model.parameters(), lr=0.1),
                **{'named_parameters': model.named_parameters(), **options})
            if schedules:  # torch wraps step() then
                torch.optim.lr_scheduler.StepLR(optimizer, 1)
            prepare(model)
            for _ in range(steps):
                optimizer.zero_grad()
                model(torch.ones(2, 5, device=DEVICE)).sum().backward()
                optimizer.step()
            if joins:
                hvd.join()
        found = [each for each in caught if PARTS in str(each.message)]
        for each in found:
            self.assertIn('hvd.broadcast_parameters', str(each.message))
            self.assertEqual(each.filename, __file__)
            self.assertIn('optimizer.step()', linecache.getline(each.filename, each.lineno))
        return len(found)

    def assert_alike(self, *models):
        """All ranks have taken the same steps."""
        for model in models:
            sums = hvd.allgather_object(checksum(model.parameters()))
            self.assertEqual(len(set(sums)), 1)

    def check_warned(self, count, **options):
        expected = count if hvd.rank() == 0 and hvd.size() > 1 else 0
        self.assertEqual(self.warned(make_model(hvd.rank()), **options), expected)

    def test_a_forgotten_broadcast_causes_one_warning(self):
        self.check_warned(1)
        self.check_warned(1, backward_passes_per_step=1, groups=1)

    def test_it_names_the_line_of_the_script_although_a_scheduler_wraps_step(self):
        self.check_warned(1, schedules=True)

    def test_a_rank_that_alone_makes_its_optimizer_again_goes_on(self):
        model = make_model(1)
        for again in range(3):
            if hvd.rank() == 0 or again == 0:
                optimizer = hvd.DistributedOptimizer(
                    torch.optim.SGD(model.parameters(), lr=0.1), model.named_parameters())
            for _ in range(3):
                optimizer.zero_grad()
                model(torch.ones(2, 5, device=DEVICE)).sum().backward()
                optimizer.step()
        self.assert_alike(model)

    def test_first_steps_may_come_in_any_order(self):
        pairs = []
        for label in ('first', 'second'):
            model = make_model(1)
            pairs.append((model, hvd.DistributedOptimizer(
                torch.optim.SGD(model.parameters(), lr=0.1),
                [(f'{label}.{name}', each) for name, each in model.named_parameters()])))
        for _ in range(2):
            for model, _ in pairs:
                model(torch.ones(2, 5, device=DEVICE)).sum().backward()
            for _, optimizer in pairs if hvd.rank() % 2 else reversed(pairs):
                optimizer.step()
                optimizer.zero_grad()
        self.assert_alike(*[model for model, _ in pairs])

    def test_a_rank_that_leaves_early_does_not_end_the_comparison_with_an_error(self):
        check = StartCheck(hvd.global_process_set, 'broadcast')
        if hvd.rank() > 0:
            with self.assertRaises(hvd.HorovodInternalError):
                hvd.allreduce(torch.ones(1), name='waits for rank 0')
            for _ in range(2):
                check.step(len, lambda: {'a': torch.ones(1)})
        hvd.shutdown()
        hvd.init()

    def test_adasum_warns_too(self):
        if hvd.size() & (hvd.size() - 1) == 0:
            self.check_warned(1, op=hvd.Adasum)

    def test_equal_parameters_cause_none(self):
        self.assertEqual(self.warned(make_model(1)), 0)
        self.check_warned(0, prepare=lambda model: hvd.broadcast_parameters(
            model.state_dict(), root_rank=0))

    def test_frozen_parameters_may_differ(self):
        model = make_model(1)
        model[0].requires_grad_(False).weight.add_(hvd.rank())
        self.assertEqual(self.warned(model), 0)
        groups = [list(model.parameters())]
        self.assertEqual(self.warned(model, groups=groups), 0)
        self.assertEqual(self.warned(model, groups=groups, named_parameters=None), 0)

    def test_all_parameters_may_be_frozen_between_backward_and_step(self):
        model = make_model(1)
        optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1))
        model(torch.ones(2, 5, device=DEVICE)).sum().backward()
        model.requires_grad_(False)
        optimizer.step()
        self.assert_alike(model)

    def test_parameters_may_have_any_names(self):
        model = torch.nn.ModuleDict({'hvd': make_model(hvd.rank())})
        optimizer = hvd.DistributedOptimizer(
            torch.optim.SGD(model.parameters(), lr=0.1), model.named_parameters())
        model['hvd'](torch.ones(2, 5, device=DEVICE)).sum().backward()
        optimizer.step()
        self.assertTrue(all(name.startswith('hvd.') for name, _ in model.named_parameters()))

    def test_a_variable_turns_it_off(self):
        off = {'HVD_CHECK_PARAMETERS': '0'} if hvd.rank() == 0 else {}
        with unittest.mock.patch.dict(os.environ, off):
            self.check_warned(0)

    def test_a_rank_without_data_does_not_warn(self):
        self.check_warned(0, steps=0 if hvd.rank() == 1 else 2, joins=True)
        self.assertEqual(self.warned(make_model(1), steps=0 if hvd.rank() == 1 else 2,
                                     joins=True), 0)

    def test_only_the_ranks_of_a_process_set_are_compared(self):
        if hvd.size() < 3:
            self.skipTest('needs 3 ranks')
        sets = [hvd.ProcessSet(range(first, hvd.size(), 2)) for first in range(2)]
        hvd.shutdown()
        hvd.init(process_sets=sets)
        own = sets[hvd.rank() % 2]
        self.assertEqual(self.warned(make_model(hvd.rank() % 2), process_set=own), 0)
        hvd.barrier()

    def test_all_layouts_have_a_checksum(self):
        base = torch.arange(1, 33, device=DEVICE).reshape(2, 4, 2, 2)
        for dtype in (torch.uint8, torch.float16, torch.bfloat16, torch.float32, torch.float64,
                      torch.complex64, torch.complex128):
            tensor = base.to(dtype)
            changed = tensor.clone()
            changed[-1, -1, -1, -1] += 1
            same = tensor.to(memory_format=torch.channels_last)
            self.assertEqual(checksum([tensor]), checksum([same]))
            self.assertNotEqual(checksum([tensor]), checksum([changed]))

    def test_tensors_without_values_of_their_own_are_left_out(self):
        with warnings.catch_warnings():
            warnings.simplefilter('ignore')  # that lazy modules are new
            lazy = torch.nn.LazyLinear(3)
        others = [*lazy.parameters(), torch.empty(2, 2, device='meta'), torch.empty(0, 3),
                  torch.eye(2).to_sparse()]
        self.assertEqual(checksum(others), 0)
