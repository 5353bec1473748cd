# SPDX-License-Identifier: Apache-2.0
"""Adasum of tensors and of an optimizer's steps. It is rejected unless the number of ranks is a
power of two."""

import torch

import horovod.torch as hvd
from case import Case
from functions_test import OPTIMIZERS
from inputs import FLOATS, values
from optimizer_test import make_model

REFUSAL = 'Running Adasum with non-power of 2 ranks is not supported yet.'
SHAPES = [(), (0,), (1,), (3, 4), (1031,)]


def has_adasum():
    return hvd.size() & (hvd.size() - 1) == 0


def adasum(tensors):
    """Returns the Adasum of the tensors, computed here in float64."""
    tensors = [tensor.detach().double() for tensor in tensors]
    while len(tensors) > 1:
        tensors = [combine(*pair) for pair in zip(tensors[::2], tensors[1::2])]
    return tensors[0]


def combine(left, right):
    dot = (left * right).sum()

    def factor(vector):
        square = vector.pow(2).sum()
        return 1 - dot / (2 * square) if square > 0 else 1

    return factor(left) * left + factor(right) * right


def inputs(shape, dtype=torch.float32, salt=0):
    """Returns the tensors of all ranks."""
    return [values(rank, shape, dtype, salt) * (-1) ** rank for rank in range(hvd.size())]


class Adasum(Case):

    def setUp(self):
        if not has_adasum():
            self.skipTest('these ranks are no power of two')

    def check(self, result, expected):
        tolerance = 8 * torch.finfo(result.dtype).eps
        self.assertEqual(result.shape, expected.shape)
        self.assertTrue(torch.allclose(result.double(), expected, tolerance, 4 * tolerance),
                        f'{result} is not {expected}')
        for other in hvd.allgather(result.detach()[None]):
            self.assertTrue(torch.equal(other, result))

    def test_every_float_and_shape_gives_the_reference(self):
        for dtype in FLOATS:
            for shape in SHAPES:
                with self.subTest(dtype=dtype, shape=shape):
                    everyone = inputs(shape, dtype)
                    mine = everyone[hvd.rank()].clone()
                    self.check(hvd.allreduce(mine, op=hvd.Adasum), adasum(everyone))
                    self.assertTrue(torch.equal(mine, everyone[hvd.rank()]))
                    self.assertIs(hvd.allreduce_(mine, op=hvd.Adasum), mine)
                    self.check(mine, adasum(everyone))

    def test_members_of_a_group_are_vectors_of_their_own(self):
        everyone = [inputs(shape, salt=salt) for salt, shape in enumerate(SHAPES)]
        mine = [each[hvd.rank()] for each in everyone]
        for result, each in zip(hvd.grouped_allreduce(mine, op=hvd.Adasum), everyone):
            self.check(result, adasum(each))

    def test_factors_scale_input_and_result(self):
        everyone = inputs((50,))
        result = hvd.allreduce(everyone[hvd.rank()], op=hvd.Adasum, prescale_factor=0.3,
                               postscale_factor=7)
        self.check(result, 7 * adasum([0.3 * each for each in everyone]))

    def test_compression_changes_the_result_little(self):
        everyone = inputs((50,))
        result = hvd.allreduce(everyone[hvd.rank()], op=hvd.Adasum,
                               compression=hvd.Compression.fp16)
        self.check(result.half(), adasum(everyone))

    def test_gradient_is_reduced_too(self):
        everyone = inputs((6,))
        mine = everyone[hvd.rank()].clone().requires_grad_()
        hvd.allreduce(mine, op=hvd.Adasum).backward(everyone[hvd.rank()])
        self.check(mine.grad, adasum(everyone))

    def test_whole_numbers_are_refused(self):
        with self.assertRaisesRegex(ValueError, 'float16, bfloat16, float32 and float64'):
            hvd.allreduce(torch.ones(3, dtype=torch.int64), op=hvd.Adasum)


class Refusal(Case):

    def test_three_ranks_are_rejected_and_the_job_continues(self):
        if has_adasum():
            self.skipTest('these ranks are a power of two')
        parameter = torch.nn.Parameter(torch.ones(1))
        for call in (lambda: hvd.allreduce(torch.ones(1), op=hvd.Adasum),
                     lambda: hvd.DistributedOptimizer(torch.optim.SGD([parameter], 1.0),
                                                      op=hvd.Adasum)):
            with self.assertRaisesRegex(NotImplementedError, REFUSAL):
                call()
        self.assertEqual(hvd.allreduce(torch.ones(1), op=hvd.Sum).item(), hvd.size())

    def test_reducescatter_is_refused(self):
        with self.assertRaisesRegex(hvd.HorovodInternalError, 'only supports AVERAGE and SUM'):
            hvd.reducescatter(torch.ones(hvd.size()), op=hvd.Adasum)


def loss_of(model, rank, step):
    generator = torch.Generator().manual_seed(100 * step + rank)
    return model(torch.randn(4, 5, generator=generator, dtype=torch.float64)).pow(2).mean()


def simulate(make, steps):
    """Trains the models of all ranks in this process; returns the parameters."""
    models = [make_model() for _ in range(hvd.size())]
    optimizers = [make(model.parameters()) for model in models]
    for step in range(steps):
        starts = [parameter.detach().clone() for parameter in models[0].parameters()]
        for rank, (model, optimizer) in enumerate(zip(models, optimizers)):
            optimizer.zero_grad()
            loss_of(model, rank, step).backward()
            optimizer.step()
        with torch.no_grad():
            for start, *places in zip(starts, *(model.parameters() for model in models)):
                end = start + adasum([place - start for place in places])
                for place in places:
                    place.copy_(end)
    return list(models[0].parameters())


class AdasumOptimizer(Case):

    def setUp(self):
        if not has_adasum():
            self.skipTest('these ranks are no power of two')

    def wrap(self, make=OPTIMIZERS['SGD momentum'], **options):
        model = make_model()
        return model, hvd.DistributedOptimizer(
            make(model.parameters()), model.named_parameters(), op=hvd.Adasum, **options)

    def train(self, model, optimizer, steps=3):
        for step in range(steps):
            optimizer.zero_grad()
            loss_of(model, hvd.rank(), step).backward()
            optimizer.step()

    def check(self, model, expected, tolerance=1e-9):
        for mine, right in zip(model.parameters(), expected):
            self.assertTrue(torch.allclose(mine, right, rtol=tolerance, atol=tolerance))
            for other in hvd.allgather(mine.detach()[None]):
                self.assertTrue(torch.equal(other, mine))

    def test_every_optimizer_combines_the_ranks_steps(self):
        for name, make in OPTIMIZERS.items():
            with self.subTest(name=name):
                model, optimizer = self.wrap(make)
                self.assertIsInstance(optimizer, type(make(make_model().parameters())))
                self.train(model, optimizer)
                self.check(model, simulate(make, 3))

    def test_unnamed_parameters_and_compression_work(self):
        make = OPTIMIZERS['SGD momentum']
        model = make_model()
        self.train(model, hvd.DistributedOptimizer(make(model.parameters()), op=hvd.Adasum))
        self.check(model, simulate(make, 3))
        model, optimizer = self.wrap(compression=hvd.Compression.fp16)
        self.train(model, optimizer)
        self.check(model, simulate(make, 3), 1e-3)

    def test_closure_computes_this_ranks_gradients(self):
        model, optimizer = self.wrap()
        for step in range(3):
            def closure(step=step):
                optimizer.zero_grad()
                loss = loss_of(model, hvd.rank(), step)
                loss.backward()
                return loss
            self.assertGreater(optimizer.step(closure).item(), 0)
        self.check(model, simulate(OPTIMIZERS['SGD momentum'], 3))

    def test_passes_add_up_before_the_step(self):
        model, optimizer = self.wrap(backward_passes_per_step=2)
        for step in range(3):
            optimizer.zero_grad()
            for _ in range(2):
                (loss_of(model, hvd.rank(), step) / 2).backward()
            optimizer.step()
        self.check(model, simulate(OPTIMIZERS['SGD momentum'], 3))

    def test_parameter_that_one_rank_does_not_use_moves_by_the_others_steps(self):
        parameter = torch.nn.Parameter(torch.ones(3))
        optimizer = hvd.DistributedOptimizer(torch.optim.SGD([parameter], 1.0), op=hvd.Adasum)
        if hvd.rank() == 0:
            (parameter * torch.tensor([1.0, 2.0, 3.0])).sum().backward()
        optimizer.step()
        self.assertEqual(parameter.tolist(), [0.0, -1.0, -2.0])

    def test_failed_step_leaves_the_parameters(self):
        if hvd.size() == 1:
            self.skipTest('a lone rank does not fail')
        parameter = torch.nn.Parameter(torch.ones(3 if hvd.rank() == 0 else 4))
        optimizer = hvd.DistributedOptimizer(torch.optim.SGD([parameter], 1.0), op=hvd.Adasum)
        parameter.sum().backward()
        with self.assertRaisesRegex(hvd.HorovodInternalError, 'Mismatched ADASUM tensor shapes'):
            optimizer.step()
        self.assertTrue(torch.equal(parameter, torch.ones_like(parameter)))

    def test_wrong_settings_are_rejected(self):
        _, optimizer = self.wrap()
        with self.assertRaises(ValueError):
            hvd.DistributedOptimizer(optimizer, op=hvd.Adasum)
        if hvd.size() > 1:
            optimizer.synchronize()
            with self.assertRaisesRegex(AssertionError, 'not supported when using Adasum'):
                with optimizer.skip_synchronize():
                    pass
