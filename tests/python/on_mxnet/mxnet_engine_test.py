# SPDX-License-Identifier: Apache-2.0
"""Collectives as operations of MXNet's engine: their order relative to computations, their
failures, and forked processes."""

import subprocess

import mxnet as mx
import numpy as np
from mxnet import gluon

import horovod.mxnet as hvd
from mxnet_case import Case, mine, stacked

# More operations than the engine has threads of any kind.
MANY = 40


class Order(Case):

    def test_a_collective_takes_what_was_computed_before_it(self):
        own = mine((50000,))
        for _ in range(30):
            own = own + 1
        result = hvd.allreduce(own, op=hvd.Sum) * 2
        self.check(result, 2 * (stacked((50000,)).sum(0) + 30 * hvd.size()).astype('float32'))

    def test_a_collective_does_not_see_what_is_written_after_it(self):
        for step in range(10):
            own = mine((50000,), salt=step)
            expected = stacked((50000,), salt=step).sum(0)
            result = hvd.allreduce(own, op=hvd.Sum)
            own[:] = -1
            self.check(result, expected)

    def test_reading_an_array_waits_for_the_collective_in_place(self):
        own = mine((50000,))
        total = stacked((50000,)).sum(0)
        for step in range(10):
            hvd.allreduce_(own, op=hvd.Average)
            own *= 2
        average = (total / hvd.size()).astype('float64')
        np.testing.assert_allclose(own.asnumpy(), average * 2 ** 10, rtol=1e-5)

    def test_ranks_may_push_in_different_orders(self):
        order = list(range(MANY))
        if hvd.rank() % 2 == 1:
            order.reverse()
        results = {salt: hvd.allreduce(mine((9,), salt=salt), op=hvd.Sum, name=f'order.{salt}')
                   for salt in order}
        for salt, result in results.items():
            self.check(result, stacked((9,), salt=salt).sum(0))

    def test_collectives_may_end_in_another_order_than_they_began(self):
        own = mine((9,))

        def early():
            return hvd.allreduce(own, op=hvd.Sum, name='early')

        if hvd.rank() == 0:
            first = early()
        second = hvd.allreduce(own, op=hvd.Sum, name='second')
        third = hvd.allreduce(second, op=hvd.Max, name='third')
        if hvd.rank() != 0:
            third.wait_to_read()
            first = early()
        for result in (first, second, third):
            self.check(result, stacked((9,)).sum(0))

    def test_computing_goes_on_while_collectives_wait_for_other_ranks(self):
        own = [mine((9,), salt=salt) for salt in range(MANY)]

        def push():
            return [hvd.allreduce(each, op=hvd.Sum, name=f'late.{salt}')
                    for salt, each in enumerate(own)]

        if hvd.rank() == 0:
            results = push()
            product = mx.nd.dot(mx.nd.ones((100, 100)), mx.nd.ones((100, 100)))
            self.assertEqual(product.sum().asscalar(), 100 ** 3)
            mx.nd.ones((3,)).copyto(mx.cpu()).wait_to_read()
        hvd.broadcast_object('rank 0 has computed', name='computed')
        if hvd.rank() != 0:
            results = push()
        for salt, result in enumerate(results):
            self.check(result, stacked((9,), salt=salt).sum(0))

    def test_priorities_are_taken(self):
        results = [hvd.allreduce(mine((9,), salt=salt), op=hvd.Sum, priority=-salt)
                   for salt in range(MANY)]
        for salt, result in enumerate(results):
            self.check(result, stacked((9,), salt=salt).sum(0))

    def test_arrays_may_be_dropped_while_they_travel(self):
        result = hvd.allreduce(mine((50000,)), op=hvd.Sum, name='kept')
        for salt in range(MANY):
            hvd.allreduce(mine((50000,), salt=salt), op=hvd.Sum)
        self.check(result, stacked((50000,)).sum(0))


class Layouts(Case):

    def test_arrays_in_the_layout_of_convolutions_are_taken_row_by_row(self):
        mx.random.seed(hvd.rank())
        network = gluon.nn.Conv2D(32, 3, in_channels=16)
        network.initialize(mx.init.Uniform(1))
        weight = network.weight.data()
        before = weight.asnumpy()
        image = mx.nd.ones((2, 16, 8, 8))
        network(image).wait_to_read()  # oneDNN changes the layout of the weights
        output = network(image)
        result = hvd.allreduce(output, op=hvd.Max)
        self.assertTrue((result.asnumpy() >= output.asnumpy()).all())
        hvd.broadcast_(weight, root_rank=0)
        self.check(weight, hvd.broadcast_object(before))

    def test_a_convolutions_gradient_is_reduced(self):
        network = gluon.nn.Conv2D(8, 3, in_channels=4)
        network.initialize(mx.init.One())
        with mx.autograd.record():
            output = network(mx.nd.ones((1, 4, 5, 5)) * (hvd.rank() + 1))
        output.backward()
        hvd.allreduce_(network.weight.grad(), op=hvd.Sum)
        total = 9 * sum(range(1, hvd.size() + 1))
        self.check(network.weight.grad(), np.full((8, 4, 3, 3), total, 'float32'))


class Failures(Case):

    def test_reading_an_array_raises_a_mismatch_and_the_job_continues(self):
        if hvd.size() == 1:
            self.skipTest('needs two ranks')
        bad = hvd.allreduce(mine((hvd.rank() + 2,)), name='bad')
        with self.assertRaisesRegex(hvd.mpi_ops.HorovodInternalError,
                                    'Mismatched ALLREDUCE tensor shapes'):
            bad.wait_to_read()
        worse = hvd.allreduce(mine((hvd.rank() + 2,)), name='bad') * 2
        with self.assertRaisesRegex(hvd.mpi_ops.HorovodInternalError, 'Mismatched ALLREDUCE'):
            worse.asnumpy()
        self.check(hvd.allreduce(mine((3,)), op=hvd.Sum, name='bad'), stacked((3,)).sum(0))

    def test_a_root_that_does_not_exist_is_a_value_error(self):
        with self.assertRaisesRegex(mx.MXNetError, 'invalid root rank') as raised:
            hvd.broadcast(mine((3,)), root_rank=hvd.size()).wait_to_read()
        self.assertIsInstance(raised.exception, ValueError)

    def test_nothing_works_before_init(self):
        hvd.shutdown()
        for call in (lambda: hvd.allreduce(mx.nd.ones((2,))), lambda: hvd.rank()):
            with self.assertRaisesRegex(ValueError, 'has not been initialized'):
                call()
        hvd.init()
        self.check(hvd.allreduce(mine((3,)), op=hvd.Sum), stacked((3,)).sum(0))

    def test_shutdown_waits_for_collectives_under_way(self):
        results = [hvd.allreduce(mine((50000,), salt=salt), op=hvd.Sum) for salt in range(MANY)]
        hvd.shutdown()
        hvd.init()
        for salt, result in enumerate(results):
            self.check(result, stacked((50000,), salt=salt).sum(0))


class Squares(gluon.data.Dataset):
    """A data set of numbers and their squares."""

    def __len__(self):
        return 12

    def __getitem__(self, index):
        return np.float32(index), np.float32(index ** 2)


class Forks(Case):

    def test_workers_may_be_forked_while_collectives_are_under_way(self):
        results = [hvd.allreduce(mine((50000,), salt=salt), op=hvd.Sum) for salt in range(MANY)]
        loader = gluon.data.DataLoader(Squares(), batch_size=4, num_workers=2, timeout=6000)
        total = sum(float(squares.sum().asscalar()) for _, squares in loader)
        self.assertEqual(total, sum(index ** 2 for index in range(12)))
        for salt, result in enumerate(results):
            self.check(result, stacked((50000,), salt=salt).sum(0))

    def test_programs_may_be_started_while_collectives_are_under_way(self):
        results = [hvd.allreduce(mine((50000,), salt=salt), op=hvd.Sum) for salt in range(MANY)]
        said = subprocess.run(['echo', 'started'], capture_output=True, text=True, check=True,
                              preexec_fn=lambda: None)
        self.assertEqual(said.stdout, 'started\n')
        for salt, result in enumerate(results):
            self.check(result, stacked((50000,), salt=salt).sum(0))
