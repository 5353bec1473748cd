# SPDX-License-Identifier: Apache-2.0
"""SyncBatchNorm: N ranks, each with a part of a batch, get the results of BatchNorm on the whole
batch."""

import copy
import unittest

import torch

import horovod.torch as hvd
from case import Case
from device import DEVICE, assert_no_waiting
from inputs import FLOATS

SHAPES = [(3,), (3, 5), (3, 4, 5), (3, 2, 2, 2)]  # shapes of a row
PLAIN = {1: torch.nn.BatchNorm1d, 2: torch.nn.BatchNorm1d, 3: torch.nn.BatchNorm2d,
         4: torch.nn.BatchNorm3d}


def parts(shape, rows, dtype=torch.float64):
    """Returns the batches of all ranks. Rank r has rows(r) rows, whose values are far from zero and
    differ between ranks."""
    generator = torch.Generator().manual_seed(5)
    return [(100 + 10 * rank + torch.randn(rows(rank), *shape, generator=generator,
                                           dtype=torch.float64)).to(DEVICE, dtype)
            for rank in range(hvd.size())]


def loss_of(result):
    """Returns a loss with a different weight for each value, so that no gradient is zero."""
    flat = result.double().flatten()
    weights = torch.linspace(1, 2, len(flat), dtype=torch.float64, device=flat.device)
    return (flat * weights).pow(2).sum()


class SyncBatchNorm(Case):

    def run_both(self, shape, rows, dtype=torch.float64, order=torch.contiguous_format,
                 **options):
        """Trains SyncBatchNorm on all ranks and BatchNorm on one rank for two steps. Returns both
        layers, each with (result, gradient of the input) of this rank's rows in the last step.
        order: the memory format."""
        alone = PLAIN[len(shape)](shape[0], **options).to(DEVICE, torch.float64)
        shared = hvd.SyncBatchNorm(shape[0], **options).to(
            DEVICE, torch.float64 if dtype is torch.float64 else torch.float32)
        with torch.no_grad():
            for layer in (alone, shared):
                if layer.affine:
                    layer.weight.copy_(torch.tensor([0.5, 1.5, 2.0]))
                    layer.bias.copy_(torch.tensor([-1.0, 0.0, 1.0]))
        batches = parts(shape, rows, dtype)
        for _ in range(2):
            whole = torch.cat(batches).double().requires_grad_()
            outputs = alone(whole).split([len(batch) for batch in batches])
            alone.zero_grad()
            sum(map(loss_of, outputs)).backward()
            mine = batches[hvd.rank()].clone(memory_format=order).requires_grad_()
            output = shared(mine)
            shared.zero_grad()
            loss_of(output).backward()
        begin = sum(len(batch) for batch in batches[:hvd.rank()])
        right = whole.grad[begin:begin + len(mine)]
        return (shared, output, mine.grad), (alone, outputs[hvd.rank()], right)

    def check_both(self, shared, alone, tolerance=1e-9):
        (layer, output, gradient), (plain, right_output, right_gradient) = shared, alone
        for mine, right in ((output, right_output), (gradient, right_gradient)):
            scale = right.abs().max().item() if right.numel() else 0
            self.assertTrue(torch.allclose(mine.double(), right, tolerance, tolerance * scale),
                            f'{mine} is not {right}')
        for mine, right in ((layer.running_mean, plain.running_mean),
                            (layer.running_var, plain.running_var)):
            if right is not None:
                self.assertTrue(torch.allclose(mine.double(), right, max(tolerance, 1e-6)))
        if layer.affine:
            for name in ('weight', 'bias'):
                mine = hvd.allreduce(getattr(layer, name).grad.double(), op=hvd.Sum)
                right = getattr(plain, name).grad
                self.assertTrue(torch.allclose(mine, right, tolerance * 10,
                                               tolerance * right.abs().max().item()), name)

    def test_every_shape_gives_what_one_batch_gives(self):
        for shape in SHAPES:
            with self.subTest(shape=shape):
                self.check_both(*self.run_both(shape, lambda rank: 4))

    def test_ranks_may_have_different_numbers_of_rows_also_none(self):
        for rows in (lambda rank: 3 * rank + 2, lambda rank: 4 * (rank == 0),
                     lambda rank: 1 + (rank == 0)):
            self.check_both(*self.run_both((3, 5), rows)) if (
                hvd.size() > 1) else self.skipTest('needs several ranks')

    def test_every_option_works_as_in_batch_norm(self):
        for options in (dict(eps=1e-2), dict(momentum=0.5), dict(momentum=None),
                        dict(affine=False), dict(track_running_stats=False)):
            with self.subTest(options=options):
                self.check_both(*self.run_both((3, 4), lambda rank: 4, **options))

    def test_every_dtype_works_and_stays(self):
        tolerances = {torch.float16: 5e-3, torch.bfloat16: 4e-2, torch.float32: 1e-4,
                      torch.float64: 1e-9}
        for dtype in FLOATS:
            if hvd.size() == 1 and dtype is torch.float16 and DEVICE == 'cpu':
                continue  # not every torch has float16 in BatchNorm on CPUs
            with self.subTest(dtype=dtype):
                shared, alone = self.run_both((3, 5), lambda rank: 4, dtype)
                self.assertEqual(shared[1].dtype, dtype)
                self.assertEqual(shared[2].dtype, dtype)
                self.check_both(shared, alone, tolerances[dtype])

    def test_the_memory_format_stays(self):
        order = torch.channels_last
        for dtype, tolerance in ((torch.float32, 1e-4), (torch.bfloat16, 4e-2)):
            shared, alone = self.run_both((3, 4, 5), lambda rank: 4, dtype, order)
            self.check_both(shared, alone, tolerance)
            self.assertTrue(shared[1].is_contiguous(memory_format=order))
            again = torch.zeros_like(shared[1], requires_grad=True) + torch.ones(1, device=DEVICE)
            (gradient,) = torch.autograd.grad(shared[0](again).pow(3).sum(), again)
            self.assertTrue(gradient.is_contiguous(memory_format=order))

    def test_mixed_precision_keeps_parameters_wide(self):
        if hvd.size() == 1:
            self.skipTest("that is BatchNorm's own")
        model = torch.nn.Sequential(torch.nn.Conv2d(3, 3, 1), hvd.SyncBatchNorm(3)).to(DEVICE)
        batch = parts((3, 2, 2), lambda rank: 4, torch.float32)[hvd.rank()]
        with torch.autocast(batch.device.type, torch.bfloat16):
            output = model(batch)
        output.float().pow(2).sum().backward()
        self.assertEqual(output.dtype, torch.bfloat16)
        for parameter in model.parameters():
            self.assertEqual(parameter.grad.dtype, torch.float32)
            self.assertTrue(parameter.grad.isfinite().all())

    def test_the_host_does_not_wait_for_the_gpu(self):
        if hvd.size() == 1:
            self.skipTest('needs several ranks')
        for options in ({}, dict(momentum=None), dict(affine=False)):
            layer = hvd.SyncBatchNorm(3, **options).to(DEVICE)
            batch = torch.randn(4, 3, 2, device=DEVICE, requires_grad=True)
            layer(batch).sum().backward()  # NCCL connects here, which takes time
            with assert_no_waiting():
                layer(batch).sum().backward()

    @unittest.skipUnless(DEVICE == 'cuda', 'needs a GPU')
    def test_stream_of_the_caller_is_used(self):
        layer = hvd.SyncBatchNorm(3).to(DEVICE)
        for step in range(20):
            batch = parts((3, 50, 50), lambda rank: 8, torch.float32)[hvd.rank()] + step
            right = layer(batch)
            stream = torch.cuda.Stream()
            stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(stream):
                torch.cuda._sleep(1000000)  # another stream would read the input too early
                late = batch * 1
                output = layer(late)
            torch.cuda.current_stream().wait_stream(stream)
            self.assertTrue(torch.allclose(output, right, 1e-4, 1e-4))

    def test_ranks_end_with_the_same_statistics(self):
        layer = self.run_both((3, 5), lambda rank: rank + 2, torch.float32)[0][0]
        for other in hvd.allgather(torch.stack([layer.running_mean, layer.running_var])[None]):
            self.assertEqual(other[0].tolist(), layer.running_mean.tolist())
            self.assertEqual(other[1].tolist(), layer.running_var.tolist())

    def test_evaluation_exchanges_nothing(self):
        layer = hvd.SyncBatchNorm(3).eval().to(DEVICE)
        if hvd.rank() == 0:
            ones = torch.ones(2, 3, device=DEVICE)
            self.assertTrue(torch.allclose(layer(ones), ones, 1e-4))

    def test_copy_of_a_model_works_in_its_place(self):
        model = torch.nn.Sequential(torch.nn.Linear(2, 3), hvd.SyncBatchNorm(3)).to(DEVICE)
        again = copy.deepcopy(model)
        batch = torch.randn(4, 2, device=DEVICE)
        self.assertEqual(again(batch).tolist(), model(batch).tolist())
        self.assertIs(again[1].process_set, hvd.global_process_set)

    def test_one_value_on_all_ranks_is_refused(self):
        layer = hvd.SyncBatchNorm(3).to(DEVICE)
        with self.assertRaisesRegex(ValueError, 'more than (one|1) value'):
            layer(torch.ones(int(hvd.rank() == 0), 3, device=DEVICE))

    def test_wrong_input_is_refused(self):
        for wrong in (torch.ones(3), torch.ones(2, 4)):
            with self.assertRaisesRegex(ValueError, r'\[rows, 3, ...\]'):
                hvd.SyncBatchNorm(3)(wrong)
