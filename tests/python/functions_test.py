# SPDX-License-Identifier: Apache-2.0
"""Broadcasts of models, optimizer states and objects."""

import collections

import torch

import horovod.torch as hvd
from case import Case


def make_model(seed):
    torch.manual_seed(seed)
    return torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.BatchNorm1d(3),
                               torch.nn.Linear(3, 2))


def train(model, optimizer, steps):
    for _ in range(steps):
        optimizer.zero_grad()
        model(torch.randn(8, 4)).pow(2).sum().backward()
        optimizer.step()


def flat(state):
    """Returns the leaves of a state_dict in order."""
    if isinstance(state, dict):
        return [leaf for key in state for leaf in flat(state[key])]
    if isinstance(state, (list, tuple)):
        return [leaf for each in state for leaf in flat(each)]
    return [state.tolist() if isinstance(state, torch.Tensor) else state]


OPTIMIZERS = {
    'SGD': lambda p: torch.optim.SGD(p, 0.1),
    'SGD momentum': lambda p: torch.optim.SGD(p, 0.1, momentum=0.9),
    'Adam': lambda p: torch.optim.Adam(p, 0.1),
    'Adam amsgrad': lambda p: torch.optim.Adam(p, 0.1, amsgrad=True),
    'Adam foreach': lambda p: torch.optim.Adam(p, 0.1, foreach=True),
    'AdamW': lambda p: torch.optim.AdamW(p, 0.1),
    'NAdam': lambda p: torch.optim.NAdam(p, 0.1),
    'RAdam': lambda p: torch.optim.RAdam(p, 0.1),
    'Adamax': lambda p: torch.optim.Adamax(p, 0.1),
    'Adagrad': lambda p: torch.optim.Adagrad(p, 0.1),
    'Adadelta': lambda p: torch.optim.Adadelta(p, 0.1),
    'ASGD': lambda p: torch.optim.ASGD(p, 0.1),
    'RMSprop': lambda p: torch.optim.RMSprop(p, 0.1, momentum=0.9, centered=True),
    'Rprop': lambda p: torch.optim.Rprop(p, 0.1),
}
if tuple(map(int, torch.__version__.split('.')[:2])) >= (2, 3):
    OPTIMIZERS['Adam fused'] = lambda p: torch.optim.Adam(p, 0.1, fused=True)
if hasattr(torch.optim, 'Adafactor'):
    OPTIMIZERS['Adafactor'] = lambda p: torch.optim.Adafactor(p, 0.1)


class Functions(Case):

    def check_same_everywhere(self, state):
        everyone = hvd.allgather_object(flat(state))
        for other in everyone:
            self.assertEqual(other, everyone[0])

    def test_parameters_that_differ_between_ranks_are_an_error_on_all(self):
        if hvd.size() == 1:
            self.skipTest('one rank has nothing to differ from')
        odd = hvd.rank() == hvd.size() - 1
        models = {
            'another parameter': torch.nn.Linear(2, 2, bias=not odd),
            'another shape': torch.nn.Linear(2, 3 if odd else 2),
            'another type': torch.nn.Linear(2, 2).to(torch.float64 if odd else torch.float32),
        }
        for case, model in models.items():
            with self.subTest(case):
                with self.assertRaisesRegex(ValueError, rf'^broadcast_parameters\(\): .*rank '
                                                        rf'{hvd.size() - 1} has '):
                    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
                optimizer = torch.optim.SGD(model.parameters(), 0.1)
                with self.assertRaisesRegex(ValueError, r'^broadcast_optimizer_state\(\): '):
                    hvd.broadcast_optimizer_state(optimizer, root_rank=0)
        self.check_same_everywhere(hvd.broadcast_object(1, root_rank=0))

    def test_named_parameters_may_come_in_any_order(self):
        named = list(make_model(hvd.rank()).named_parameters())
        hvd.broadcast_parameters(named[::-1] if hvd.rank() == 0 else named, root_rank=0)
        self.check_same_everywhere({name: tensor.detach() for name, tensor in sorted(named)})

    def test_parameters_come_from_the_root_in_every_form(self):
        root = hvd.size() - 1
        for form in (lambda model: model.state_dict(),
                     lambda model: model.named_parameters(),
                     lambda model: list(model.named_parameters()),
                     lambda model: list(model.parameters())):
            model = make_model(hvd.rank())
            hvd.broadcast_parameters(form(model), root_rank=root)
            right = make_model(root)
            for mine, expected in zip(model.parameters(), right.parameters()):
                self.assertTrue(torch.equal(mine, expected))

    def test_parameters_that_are_not_tensors_are_rejected(self):
        for wrong in (torch.ones(3), {'weight': torch.ones(3), 'extra': 'text'}):
            with self.assertRaises(ValueError):
                hvd.broadcast_parameters(wrong, root_rank=0)

    def test_optimizer_state_comes_from_the_root(self):
        for name, make in OPTIMIZERS.items():
            for steps in ((3, 0), (0, 2), (2, 4)):  # steps of the root, and of each other rank
                with self.subTest(name=name, steps=steps):
                    model = make_model(0)
                    optimizer = make(model.parameters())
                    optimizer.param_groups[0]['lr'] = 0.1 / (hvd.rank() + 1)
                    train(model, optimizer, steps[hvd.rank() > 0])
                    before = optimizer.state_dict()
                    hvd.broadcast_optimizer_state(optimizer, root_rank=0)
                    self.check_same_everywhere(optimizer.state_dict())
                    if hvd.rank() == 0:
                        self.assertEqual(flat(optimizer.state_dict()), flat(before))
                    self.assertEqual(optimizer.param_groups[0]['lr'], 0.1)
                    train(model, optimizer, 1)

    def test_distributed_optimizer_state_is_broadcast_too(self):
        model = make_model(0)
        optimizer = hvd.DistributedOptimizer(torch.optim.Adam(model.parameters(), 0.1),
                                             model.named_parameters())
        train(model, optimizer, 2)
        hvd.broadcast_optimizer_state(optimizer, root_rank=0)
        self.check_same_everywhere(optimizer.state_dict())

    def test_momentum_of_16_bit_parameters_keeps_its_dtype(self):
        parameter = torch.nn.Parameter(torch.ones(3, dtype=torch.float16))
        optimizer = torch.optim.SGD([parameter], 0.1)
        if hvd.rank() == 0:
            optimizer.state[parameter]['average'] = torch.full((3,), 1e-6)
        hvd.broadcast_optimizer_state(optimizer, root_rank=0)
        average = optimizer.state[parameter]['average']
        self.assertEqual((average.dtype, average[0].item()),
                         (torch.float32, torch.tensor(1e-6).item()))

    def test_lbfgs_is_refused(self):
        optimizer = torch.optim.LBFGS(make_model(0).parameters())
        with self.assertRaises(ValueError):
            hvd.broadcast_optimizer_state(optimizer, root_rank=0)

    def test_objects_of_any_kind_come_from_the_root(self):
        root = hvd.size() - 1
        sent = {'text': 'ä' * hvd.rank(), 'list': [None, 1.5, (True,)],
                'tensor': torch.arange(3), 'ordered': collections.OrderedDict(a=1)}
        received = hvd.broadcast_object(sent if hvd.rank() == root else None, root_rank=root)
        self.assertEqual(received['text'], 'ä' * root)
        self.assertEqual(received['list'], [None, 1.5, (True,)])
        self.assertEqual(received['tensor'].tolist(), [0, 1, 2])
        self.assertIsNone(hvd.broadcast_object(None, name='nothing'))

    def test_large_objects_are_broadcast(self):
        sent = bytes(range(256)) * 5000
        self.assertEqual(hvd.broadcast_object(sent if hvd.rank() == 0 else b''), sent)

    def test_gathered_objects_are_in_rank_order(self):
        gathered = hvd.allgather_object({'rank': hvd.rank(), 'load': 'x' * (100 * hvd.rank())})
        self.assertEqual([each['rank'] for each in gathered], list(range(hvd.size())))
        self.assertEqual([len(each['load']) for each in gathered],
                         [100 * rank for rank in range(hvd.size())])
