# SPDX-License-Identifier: Apache-2.0
"""DistributedOptimizer(shared_gradients=True): gradients in memory that the ranks of a node map.

All ranks' values are added up in the order of ranks, wherever they lie: so training must be equal to
the last bit to one without the option.
"""

import copy
import gc
import io
import os
import unittest

import torch

import horovod.torch as hvd
from case import Case
from horovod.common import shared
from horovod.torch.shared_gradients import VARIABLE

MEMFD = 'hvd-shared'


def count_pieces():
    """Of memory that ranks share, in this process."""
    gc.collect()
    links = []
    for each in os.listdir('/proc/self/fd'):
        try:
            links.append(os.readlink(f'/proc/self/fd/{each}'))
        except FileNotFoundError:
            pass  # that of the directory
    return sum(MEMFD in link for link in links)


def is_shared(tensor):
    """Whether all of the tensor's elements lie in memory that ranks share."""
    begin = tensor.data_ptr()
    end = begin + tensor.numel() * tensor.element_size()
    with open('/proc/self/maps') as file:
        for line in file:
            low, high = (int(each, 16) for each in line.split()[0].split('-'))
            if MEMFD in line and low <= begin and end <= high:
                return True
    return False


def make_model(width=8):
    torch.manual_seed(3)
    return torch.nn.Sequential(torch.nn.Linear(5, width), torch.nn.Tanh(),
                               torch.nn.Linear(width, 3))


def wrap(model, is_on=True, **options):
    return hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), 0.1, momentum=0.9),
                                    model.named_parameters(), shared_gradients=is_on, **options)


def loss_of(model, step=0):
    generator = torch.Generator().manual_seed(100 * step + hvd.rank())
    return model(torch.randn(6, 5, generator=generator)).pow(2).mean()


def train(model, optimizer, set_to_none, passes=1, steps=3):
    for step in range(steps):
        optimizer.zero_grad(set_to_none=set_to_none)
        for part in range(passes):
            loss_of(model, step * passes + part).backward()
        optimizer.step()


class SharedGradients(Case):

    def check_alike(self, model, other):
        for mine, right in zip(model.parameters(), other.parameters()):
            self.assertTrue(torch.equal(mine, right))

    def check_shared(self, model, expected=True):
        for parameter in model.parameters():
            self.assertEqual(is_shared(parameter.grad), expected and hvd.size() > 1)

    def test_training_is_as_without(self):
        for width in (8, 50000):
            for options in ({}, dict(groups=2), dict(gradient_predivide_factor=2.0),
                            dict(op=hvd.Sum), dict(backward_passes_per_step=2),
                            dict(compression=hvd.Compression.fp16)):
                for set_to_none in (False, True):
                    with self.subTest(width=width, options=options, set_to_none=set_to_none):
                        models = make_model(width), make_model(width)
                        for is_on, model in enumerate(models):
                            train(model, wrap(model, bool(is_on), **options), set_to_none,
                                  options.get('backward_passes_per_step', 1))
                        self.check_alike(*models)
                        self.check_shared(models[0], False)
                        self.check_shared(models[1], 'compression' not in options)

    def test_gradients_keep_their_place(self):
        model = make_model()
        optimizer = wrap(model)
        places = []
        for set_to_none in (False, True, False):
            train(model, optimizer, set_to_none, steps=1)
            places.append([parameter.grad.data_ptr() for parameter in model.parameters()])
        if hvd.size() > 1:
            self.assertEqual(places[1], places[0])
        self.assertEqual(places[2], places[1])
        optimizer.zero_grad(set_to_none=False)
        self.check_shared(model)
        for parameter in model.parameters():
            self.assertEqual(int(parameter.grad.count_nonzero()), 0)
        optimizer.zero_grad(set_to_none=True)
        self.assertEqual([parameter.grad for parameter in model.parameters()], [None] * 4)
        train(model, optimizer, True, steps=1)
        model.zero_grad(set_to_none=True)
        self.assertEqual([parameter.grad for parameter in model.parameters()], [None] * 4)

    def test_a_rank_without_gradients_adds_nothing(self):
        model = make_model()
        optimizer = wrap(model, op=hvd.Sum)
        train(model, optimizer, True, steps=1)  # what is in the places now must not count
        before = [parameter.grad.clone() for parameter in model.parameters()]
        optimizer.zero_grad(set_to_none=True)
        if hvd.rank() == 0:
            sum(parameter.sum() for parameter in model.parameters()).backward()
        optimizer.synchronize()
        for parameter, old in zip(model.parameters(), before):
            self.assertTrue(torch.equal(parameter.grad, torch.ones_like(old)))
        self.check_shared(model)
        with optimizer.skip_synchronize():
            optimizer.step()

    def test_parameters_may_come_later(self):
        model = make_model()
        model[0].weight.requires_grad = False
        optimizer = wrap(model)
        train(model, optimizer, True)
        self.assertIsNone(model[0].weight.grad)
        model[0].weight.requires_grad = True
        more = torch.nn.Parameter(torch.ones(3))
        optimizer.add_param_group(dict(params=[more]))
        for _ in range(2):
            optimizer.zero_grad(set_to_none=True)
            (loss_of(model) + more.sum() * hvd.size()).backward()
            optimizer.step()
        self.check_shared(model)
        self.assertEqual(is_shared(more.grad), hvd.size() > 1)
        self.assertEqual(more.grad.tolist(), [hvd.size()] * 3)

    def test_what_the_user_puts_there_is_reduced(self):
        model = make_model()
        optimizer = wrap(model, op=hvd.Sum)
        train(model, optimizer, False, steps=1)
        for parameter in model.parameters():
            wide = torch.ones(*parameter.shape, 2)
            parameter.grad = wide[..., 0]  # not contiguous
        optimizer.synchronize()
        self.check_shared(model)
        for parameter in model.parameters():
            self.assertTrue(torch.equal(parameter.grad,
                                        torch.full_like(parameter, hvd.size())))
        with optimizer.skip_synchronize():
            optimizer.step()

    def test_gradients_may_change_places(self):
        first, second = (torch.nn.Parameter(torch.zeros(4)) for _ in range(2))
        optimizer = hvd.DistributedOptimizer(torch.optim.SGD([first, second], 0.1), op=hvd.Sum,
                                             shared_gradients=True)
        for _ in range(2):
            optimizer.zero_grad(set_to_none=False)
            (first.sum() + 2 * second.sum()).backward()
            optimizer.synchronize()
            with optimizer.skip_synchronize():
                optimizer.step()
        first.grad, second.grad = second.grad, first.grad
        optimizer.synchronize()
        self.assertEqual(first.grad.tolist(), [2 * hvd.size() ** 2] * 4)
        self.assertEqual(second.grad.tolist(), [hvd.size() ** 2] * 4)

    def test_a_gradient_with_a_graph_keeps_it(self):
        parameter = torch.nn.Parameter(torch.full((4,), 2.0))
        optimizer = hvd.DistributedOptimizer(torch.optim.SGD([parameter], 0.1),
                                             shared_gradients=True)
        parameter.pow(3).sum().backward(create_graph=True)
        optimizer.synchronize()
        self.assertIsNotNone(parameter.grad.grad_fn)
        self.assertFalse(is_shared(parameter.grad))
        self.assertEqual(parameter.grad.tolist(), [12.0] * 4)
        second, = torch.autograd.grad(parameter.grad.sum(), parameter)
        self.assertEqual(second.tolist(), [12.0] * 4)
        with optimizer.skip_synchronize():
            optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        parameter.sum().backward()
        optimizer.step()
        self.assertFalse(parameter.grad.requires_grad)
        self.assertEqual(is_shared(parameter.grad), hvd.size() > 1)

    def test_strides_are_those_of_the_parameter(self):
        model = torch.nn.Conv2d(4, 6, 3).to(memory_format=torch.channels_last)
        hvd.broadcast_parameters(model.state_dict(), 0)
        optimizer = wrap(model, op=hvd.Sum)
        optimizer.zero_grad(set_to_none=True)
        (model.weight * torch.arange(model.weight.numel()).view_as(model.weight)).sum().backward()
        optimizer.synchronize()
        self.assertEqual(model.weight.grad.stride(), model.weight.stride())
        expected = torch.arange(model.weight.numel()).view(model.weight.shape) * hvd.size()
        self.assertTrue(torch.equal(model.weight.grad, expected.float()))
        self.assertEqual(is_shared(model.weight.grad), hvd.size() > 1)
        with optimizer.skip_synchronize():
            optimizer.step()

    def test_sparse_gradients_stay_sparse(self):
        for as_dense in (False, True):
            model = torch.nn.Embedding(10, 3, sparse=True)
            torch.nn.init.ones_(model.weight)
            optimizer = hvd.DistributedOptimizer(
                torch.optim.SGD(model.parameters(), 1.0), model.named_parameters(), op=hvd.Sum,
                sparse_as_dense=as_dense, shared_gradients=True)
            for _ in range(2):
                optimizer.zero_grad(set_to_none=True)
                model(torch.tensor([1, hvd.rank()])).sum().backward()
                optimizer.step()
            if hvd.size() > 1:
                self.assertTrue(model.weight.grad.is_sparse)
            self.assertEqual(model.weight[1, 0].item(),
                             1 - 2 * (hvd.size() + (hvd.size() > 1)))

    def test_clipping_acts_on_what_the_step_takes(self):
        models = make_model(), make_model()
        for is_on, model in enumerate(models):
            optimizer = wrap(model, bool(is_on))
            for step in range(2):
                optimizer.zero_grad(set_to_none=True)
                loss_of(model, step).backward()
                optimizer.synchronize()
                torch.nn.utils.clip_grad_norm_(model.parameters(), 0.01)
                with optimizer.skip_synchronize():
                    optimizer.step()
        self.check_alike(*models)
        self.assertLess(float(torch.cat([each.grad.flatten() for each in
                                         models[1].parameters()]).norm()), 0.0101)

    def test_what_is_saved_or_copied_takes_nothing_along(self):
        model = make_model(4096)
        optimizer = wrap(model)
        train(model, optimizer, True)
        file = io.BytesIO()
        torch.save(model[0].bias.grad, file)
        self.assertLess(len(file.getvalue()), 4096 * 4 + 8192)
        twin = copy.deepcopy(model)
        for mine, right in zip(twin.parameters(), model.parameters()):
            self.assertTrue(torch.equal(mine, right))
        state = optimizer.state_dict()
        other = wrap(twin)
        other.load_state_dict(copy.deepcopy(state))
        optimizer.load_state_dict(copy.deepcopy(state))
        for each, its in ((model, optimizer), (twin, other)):
            train(each, its, True)
        self.check_alike(model, twin)
        self.check_shared(twin)

    def test_a_model_may_change_its_dtype(self):
        for set_to_none in (False, True):
            model = make_model()
            optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), 0.1),
                                                 model.named_parameters(), shared_gradients=True)
            train(model, optimizer, False, steps=1)
            optimizer.zero_grad(set_to_none=set_to_none)
            model.double()
            model(torch.ones(2, 5, dtype=torch.float64)).sum().backward()
            optimizer.step()
            self.assertEqual(model[0].weight.grad.dtype, torch.float64)

    def test_memory_is_freed_with_its_last_user(self):
        before = count_pieces()
        model = make_model()
        optimizer = wrap(model)
        train(model, optimizer, True)
        self.assertEqual(count_pieces() - before, int(hvd.size() > 1))
        kept = model[0].bias.grad
        del model, optimizer
        self.assertEqual(count_pieces() - before, int(hvd.size() > 1))
        self.assertEqual(int(kept.isfinite().sum()), 8)
        del kept
        self.assertEqual(count_pieces(), before)

    def test_a_forked_child_does_not_empty_it(self):
        memory = shared.allocate(100)
        memory[7] = b'x'
        child = os.fork()
        if child == 0:
            del memory
            gc.collect()
            os._exit(0)
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        self.assertEqual(memory[7], b'x')

    def test_without_the_option_no_memory_is_shared(self):
        before = count_pieces()
        model = make_model()
        train(model, wrap(model, False), True)
        self.assertEqual(count_pieces(), before)

    def test_the_variable_speaks_where_the_argument_does_not(self):
        given = os.environ.pop(VARIABLE, None)
        try:
            for value, choice, expected in (
                    (None, None, False), ('0', None, False), ('1', None, True),
                    ('1', False, False), ('0', True, True)):
                os.environ.pop(VARIABLE, None)
                if value is not None:
                    os.environ[VARIABLE] = value
                model = make_model()
                train(model, wrap(model, choice), True, steps=1)
                self.check_shared(model, expected)
            os.environ[VARIABLE] = 'yes'
            with self.assertRaisesRegex(ValueError, f'{VARIABLE}=yes: use 1'):
                wrap(make_model(), None)
        finally:
            os.environ.pop(VARIABLE, None)
            if given is not None:
                os.environ[VARIABLE] = given

    def test_adasum_refuses_it(self):
        if hvd.size() & (hvd.size() - 1):
            self.skipTest('Adasum is for powers of two of ranks')
        with self.assertRaisesRegex(ValueError, 'shared_gradients=True is not for op=Adasum'):
            wrap(make_model(), op=hvd.Adasum)


if __name__ == '__main__':
    unittest.main()
