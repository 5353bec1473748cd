# SPDX-License-Identifier: Apache-2.0
"""Every optimizer of torch.optim is tested: those with special needs here, the others in
optimizer_test."""

import torch

import horovod.torch as hvd
from case import Case
from functions_test import OPTIMIZERS
from optimizer_test import batch, loss_of, make_model, own


def train_with_closure(model, optimizer, rows_of, steps=3):
    """Trains with a closure; returns how often the optimizer called it."""
    calls = []
    for step in range(steps):
        def closure(rows=rows_of(batch(step))):
            calls.append(step)
            optimizer.zero_grad()
            loss = loss_of(model, rows)
            loss.backward()
            return loss

        optimizer.step(closure)
    return len(calls)


class Optimizers(Case):

    def check_models(self, model, alone, tolerance=1e-8):
        for mine, right in zip(model.parameters(), alone.parameters()):
            self.assertTrue(torch.allclose(mine, right, tolerance, tolerance))
            for other in hvd.allgather(mine.detach()[None]):
                self.assertTrue(torch.equal(other, mine))

    def test_every_optimizer_of_torch_is_tested(self):
        tested = {type(make([torch.nn.Parameter(torch.ones(1))])).__name__
                  for make in OPTIMIZERS.values()}
        tested |= {'LBFGS', 'SparseAdam', 'Muon', 'Optimizer'}
        there = {name for name, kind in vars(torch.optim).items()
                 if isinstance(kind, type) and issubclass(kind, torch.optim.Optimizer)}
        self.assertEqual(there - tested, set())

    def test_lbfgs_trains_as_one_rank_would(self):
        for options in (dict(), dict(line_search_fn='strong_wolfe')):
            for op, part in ((hvd.Average, 1), (hvd.Sum, hvd.size())):
                with self.subTest(options=options, op=op):
                    # The tolerance ends the search when the loss hardly changes. All ranks must
                    # see the same loss: otherwise one stops and the others wait for it.
                    settings = dict(lr=0.5, max_iter=20, tolerance_change=1e-4, **options)
                    model, alone = make_model(), make_model()
                    optimizer = hvd.DistributedOptimizer(
                        torch.optim.LBFGS(model.parameters(), **settings),
                        model.named_parameters(), op=op)
                    plain = torch.optim.LBFGS(alone.parameters(), **settings)
                    calls = train_with_closure(model, optimizer, own)
                    if op == hvd.Average:
                        self.assertEqual(train_with_closure(alone, plain, lambda rows: rows),
                                         calls)
                        self.check_models(model, alone, 1e-6)
                    self.assertEqual(len(set(hvd.allgather_object(calls))), 1)

    def test_sparse_adam_takes_sparse_gradients(self):
        tables = []
        for is_shared in (True, False):
            torch.manual_seed(3)
            table = torch.nn.Embedding(6, 2, sparse=True).double()
            optimizer = torch.optim.SparseAdam(list(table.parameters()), 0.1)
            ranks = range(hvd.size())
            if is_shared:
                ranks = [hvd.rank()]
                optimizer = hvd.DistributedOptimizer(optimizer, table.named_parameters())
            for step in range(3):
                optimizer.zero_grad()
                rows = torch.tensor([[(rank + step) % 5, 5] for rank in ranks]).flatten()
                (table(rows).pow(2).sum() / len(ranks)).backward()
                optimizer.step()
            tables.append(table)
        self.check_models(*tables)

    def test_muon_takes_matrices(self):
        if not hasattr(torch.optim, 'Muon'):
            self.skipTest('this torch has no Muon')
        models = []
        for is_shared in (True, False):
            torch.manual_seed(3)
            model = torch.nn.Linear(5, 3, bias=False)
            optimizer = torch.optim.Muon(model.parameters(), 0.1)
            if is_shared:
                optimizer = hvd.DistributedOptimizer(optimizer, model.named_parameters())
            for step in range(3):
                optimizer.zero_grad()
                rows = batch(step, torch.float32)
                loss_of(model, own(rows) if is_shared else rows).backward()
                optimizer.step()
            models.append(model)
        self.check_models(*models, 1e-2)  # Muon computes in bfloat16
