# SPDX-License-Identifier: Apache-2.0
"""GradScaler works with DistributedOptimizer without synchronize(), and all ranks skip a step or
none."""

import unittest

import torch

import horovod.torch as hvd
from case import Case
from device import DEVICE
from functions_test import OPTIMIZERS
from optimizer_test import ROWS, batch, loss_of, make_model, own

ANYWHERE = hasattr(torch, 'amp') and hasattr(torch.amp, 'GradScaler')
SCALE = 2.0 ** 10  # a power of two, so scaling is exact


def make_scaler(**options):
    return (torch.amp.GradScaler(DEVICE, **options) if ANYWHERE
            else torch.cuda.amp.GradScaler(**options))


def train(model, optimizer, step, rows, scale=SCALE, clip=None, before=None):
    """Takes a step with a scaler. ``before``: a function to call with the scaler before it checks
    the gradients."""
    scaler = make_scaler(init_scale=scale)
    optimizer.zero_grad()
    scaler.scale(loss_of(model, rows)).backward()
    if before:
        before(scaler)
    if clip:
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
    step(scaler)
    scaler.update()
    return scaler


@unittest.skipUnless(ANYWHERE or DEVICE == 'cuda', 'the GradScaler of this torch is for GPUs only')
class Scaler(Case):

    def wrap(self, make=OPTIMIZERS['Adam'], **options):
        model = make_model(torch.float32)
        return model, hvd.DistributedOptimizer(make(model.parameters()),
                                               model.named_parameters(), **options)

    def parameters(self, model):
        return torch.cat([parameter.detach().flatten() for parameter in model.parameters()])

    def check_same_everywhere(self, model):
        mine = self.parameters(model)
        for other in hvd.allgather(mine[None]):
            self.assertEqual(other.tolist(), mine.tolist())

    def check_as_without(self, make, clip=None, **options):
        """Checks that three steps give exactly the same parameters as without a scaler."""
        model, optimizer = self.wrap(make, **options)
        other, plain = self.wrap(make, **options)
        for step in range(3):
            rows = own(batch(step, torch.float32))
            train(model, optimizer, lambda scaler: scaler.step(optimizer), rows, clip=clip)
            plain.zero_grad()
            loss_of(other, rows).backward()
            plain.synchronize()
            if clip:
                torch.nn.utils.clip_grad_norm_(other.parameters(), clip)
            with plain.skip_synchronize():
                plain.step()
        self.assertEqual(self.parameters(model).tolist(), self.parameters(other).tolist())
        self.check_same_everywhere(model)

    def test_step_needs_no_synchronize(self):
        for name in ('SGD momentum', 'Adam', 'Adam fused'):
            with self.subTest(name=name):
                self.check_as_without(OPTIMIZERS[name])

    def test_gradients_of_late_ranks_are_waited_for(self):
        if hvd.size() == 1:
            self.skipTest('a lone rank waits for nobody')
        model, optimizer = self.wrap(OPTIMIZERS['SGD'])
        alone = make_model(torch.float32)
        plain = OPTIMIZERS['SGD'](alone.parameters())
        # Rank 0 submits its gradients later than the others.
        if hvd.rank() == 0:
            hvd.barrier()
        train(model, optimizer, lambda scaler: scaler.step(optimizer),
              own(batch(0, torch.float32)),
              before=lambda scaler: hvd.barrier() if hvd.rank() > 0 else None)
        loss_of(alone, batch(0, torch.float32)).backward()
        plain.step()
        self.assertTrue(torch.allclose(self.parameters(model), self.parameters(alone)))
        self.check_same_everywhere(model)

    def test_gradients_can_be_clipped_after_unscale(self):
        self.check_as_without(OPTIMIZERS['Adam'], clip=0.05)

    def test_gradients_are_summed_once(self):
        self.check_as_without(OPTIMIZERS['SGD momentum'], op=hvd.Sum)

    def test_horovods_way_works_too(self):
        model, optimizer = self.wrap(op=hvd.Sum)
        other, automatic = self.wrap(op=hvd.Sum)

        def step(scaler):
            with optimizer.skip_synchronize():
                scaler.step(optimizer)

        for number in range(3):
            rows = own(batch(number, torch.float32))
            train(model, optimizer, step, rows, clip=0.05,
                  before=lambda scaler: optimizer.synchronize())
            train(other, automatic, lambda scaler: scaler.step(automatic), rows, clip=0.05)
        self.assertEqual(self.parameters(model).tolist(), self.parameters(other).tolist())

    def check_skips_together(self, **options):
        """Checks that all ranks skip the second of three steps, in which the last rank's gradients
        overflow."""
        for name in ('SGD momentum', 'Adam fused'):
            model, optimizer = self.wrap(OPTIMIZERS[name], **options)
            scales = []
            for step in range(3):
                rows = own(batch(step, torch.float32)).clone()
                if step == 1 and hvd.rank() == hvd.size() - 1:
                    rows[0, 0] = float('inf')
                before = self.parameters(model)
                scaler = train(model, optimizer, lambda scaler: scaler.step(optimizer), rows)
                scales.append(scaler.get_scale() / SCALE)
                self.assertEqual(torch.equal(before, self.parameters(model)), step == 1)
                self.check_same_everywhere(model)
            self.assertEqual(scales, [1.0, 0.5, 1.0])

    def test_step_is_skipped_on_all_ranks_or_none(self):
        self.check_skips_together()

    def test_adasum_step_is_skipped_on_all_ranks_or_none(self):
        if hvd.size() & (hvd.size() - 1):
            self.skipTest('Adasum needs a power of two of ranks')
        self.check_skips_together(op=hvd.Adasum)

    def test_several_backward_passes_make_a_step(self):
        model, optimizer = self.wrap(backward_passes_per_step=2)
        other, plain = self.wrap()
        scaler = make_scaler(init_scale=SCALE)
        rows = own(batch(0, torch.float32))
        for part in rows.split(ROWS // 2):
            scaler.scale(loss_of(model, part)).backward()
        scaler.step(optimizer)
        (sum(loss_of(other, part) for part in rows.split(ROWS // 2))).backward()
        plain.step()
        self.assertTrue(torch.allclose(self.parameters(model), self.parameters(other)))
        self.check_same_everywhere(model)

    def test_other_optimizers_are_left_alone(self):
        model = make_model(torch.float32)
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        before = self.parameters(model)
        train(model, optimizer, lambda scaler: scaler.step(optimizer), batch(0, torch.float32))
        self.assertFalse(torch.equal(before, self.parameters(model)))
