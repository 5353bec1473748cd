# SPDX-License-Identifier: Apache-2.0
"""DistributedOptimizer trains like one rank with all the data."""

import jax
import jax.numpy as jnp
import numpy as np
import optax

import horovod.jax as hvd
from jax_case import Case, mine, total

ROWS = 6


def loss(parameters, rows):
    return ((rows @ parameters['w'] + parameters['b'] - 1) ** 2).mean()


def train(optimizer, rows, compiled=True):
    """Returns the parameters after five steps."""
    def step(parameters, state):
        gradients = jax.grad(loss)(parameters, rows)
        updates, state = optimizer.update(gradients, state, parameters)
        return optax.apply_updates(parameters, updates), state

    parameters = {'w': jnp.ones((3,)), 'b': jnp.zeros(())}
    state = optimizer.init(parameters)
    step = jax.jit(step) if compiled else step
    for _ in range(5):
        parameters, state = step(parameters, state)
    return parameters


class Training(Case):

    def check_training(self, **settings):
        compiled = settings.pop('compiled', True)
        rows = mine((ROWS, 3))
        alone = train(optax.adam(0.1), hvd.allgather(rows))
        result = train(hvd.DistributedOptimizer(optax.adam(0.1), **settings), rows, compiled)
        for name in alone:
            np.testing.assert_allclose(result[name], alone[name], rtol=1e-4, atol=1e-5)

    def test_ranks_train_like_one_with_all_the_data(self):
        self.check_training()

    def test_outside_jit(self):
        self.check_training(compiled=False)

    def test_predivide_factor(self):
        self.check_training(gradient_predivide_factor=2.0)

    def test_chained_and_masked_optimizers(self):
        optimizer = hvd.DistributedOptimizer(optax.chain(
            optax.masked(optax.clip(10.0), {'w': True, 'b': False}), optax.sgd(1.0)))
        gradients = {'w': mine((3,)), 'b': mine(())}
        updates, _ = optimizer.update(gradients, optimizer.init(gradients), gradients)
        self.check(updates['w'], -(total((3,)) / hvd.size()).astype('float32'))

    def test_what_is_no_optimizer_is_refused(self):
        with self.assertRaisesRegex(TypeError, 'expected an optax.GradientTransformation'):
            hvd.DistributedOptimizer('adam')
        with self.assertRaisesRegex(ValueError, 'gradient_predivide_factor not supported'):
            hvd.DistributedOptimizer(optax.sgd(1.0), op=hvd.Sum, gradient_predivide_factor=2.0)
