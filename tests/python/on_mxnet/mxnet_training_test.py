# SPDX-License-Identifier: Apache-2.0
"""Training on all ranks gives the result of one rank with all batches; parameters and objects can
be broadcast."""

import copy
import pickle
import warnings

import mxnet as mx
import numpy as np
from mxnet import autograd, gluon

import horovod.mxnet as hvd
from horovod.common import requests
from horovod.mxnet.compression import Compressor, FP16Compressor, NoneCompressor
from mxnet_case import Case, array, mine, values

BATCH, STEPS = 4, 3
LOSS = gluon.loss.L2Loss()


def make_network(seed=7, shape_is_known=True):
    mx.random.seed(seed)
    network = gluon.nn.HybridSequential(prefix='network_')
    with network.name_scope():
        network.add(gluon.nn.Dense(6, activation='tanh', in_units=5 if shape_is_known else 0))
        network.add(gluon.nn.Dense(2, in_units=6 if shape_is_known else 0))
    network.initialize(mx.init.Uniform(0.5))
    network.hybridize()
    return network


def batch(step, ranks):
    """Returns the inputs and targets of these ranks in a step."""
    parts = [np.random.RandomState(100 * step + rank).rand(BATCH, 7) for rank in ranks]
    both = np.concatenate(parts).astype('float32')
    return mx.nd.array(both[:, :5]), mx.nd.array(both[:, 5:])


def backward(network, step, ranks):
    inputs, targets = batch(step, ranks)
    with autograd.record():
        loss = LOSS(network(inputs), targets)
    loss.backward()


def parameters(network):
    return [each.data().asnumpy() for _, each in sorted(network.collect_params().items())]


def train(network, trainer, ranks):
    """Trains; returns the parameters. hvd's trainer is told the batch size of one rank, gluon's
    trainer the sum of all batch sizes."""
    for step in range(STEPS):
        backward(network, step, ranks)
        trainer.step(BATCH * (len(ranks) if type(trainer) is gluon.Trainer else 1))
    return parameters(network)


def update_all(network, optimizer, states, at_once):
    """Updates all parameters with an optimizer, as a script without a trainer does: with one call
    for all if ``at_once``, otherwise with one call for each parameter."""
    named = [each for _, each in sorted(network.collect_params().items())]
    weights = [each.data() for each in named]
    gradients = [each.grad() for each in named]
    for index, weight in enumerate(weights):
        if index not in states:
            states[index] = optimizer.create_state_multi_precision(index, weight)
    if at_once:
        indices = list(range(len(named)))
        optimizer.update_multi_precision(indices, weights, gradients,
                                         [states[index] for index in indices])
        return
    for index, (weight, gradient) in enumerate(zip(weights, gradients)):
        optimizer.update_multi_precision(index, weight, gradient, states[index])


def warnings_of_start(network):
    """Trains, as in a new job; returns how often this rank has warned of different parameters."""
    requests.restart_all_names()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter('always')
        train(network, hvd.DistributedTrainer(network.collect_params(), 'sgd'), [hvd.rank()])
    return sum('started from different parameters' in str(each.message) for each in caught)


class Trainers(Case):

    def test_a_forgotten_broadcast_causes_one_warning(self):
        expected = 1 if hvd.rank() == 0 and hvd.size() > 1 else 0
        self.assertEqual(warnings_of_start(make_network(seed=hvd.rank())), expected)
        network = make_network(seed=hvd.rank(), shape_is_known=False)
        hvd.broadcast_parameters(network.collect_params(), root_rank=0)
        self.assertEqual(warnings_of_start(network), 0)

    def check_all(self, results, expected, tolerance=1e-5):
        for result, right in zip(results, expected):
            np.testing.assert_allclose(result, right, rtol=tolerance, atol=tolerance)

    def whole(self, optimizer='sgd', settings=None):
        """Trains on one rank with the batches of all ranks; returns the parameters."""
        network = make_network()
        trainer = gluon.Trainer(network.collect_params(), optimizer, dict(settings or {}),
                                kvstore=None)
        return train(network, trainer, range(hvd.size()))

    def shared(self, optimizer='sgd', settings=None, **options):
        network = make_network()
        trainer = hvd.DistributedTrainer(network.collect_params(), optimizer,
                                         dict(settings or {}), **options)
        return train(network, trainer, [hvd.rank()])

    def test_training_is_that_of_one_rank_with_all_batches(self):
        for optimizer, settings in (('sgd', {'learning_rate': 0.1, 'momentum': 0.9}),
                                    ('adam', {'learning_rate': 0.01})):
            with self.subTest(optimizer=optimizer):
                before = parameters(make_network())
                expected = self.whole(optimizer, settings)
                self.assertGreater(abs(before[0] - expected[0]).max(), 1e-3)
                self.check_all(self.shared(optimizer, settings), expected)

    def test_groups_and_predivision_change_nothing(self):
        expected = self.whole()
        for options in ({'num_groups': 1}, {'num_groups': 3}, {'num_groups': 100},
                        {'gradient_predivide_factor': 2.0}):
            with self.subTest(options=options):
                self.check_all(self.shared(**options), expected)

    def test_gradients_may_travel_as_halves_and_come_back_as_floats(self):
        for compression in (hvd.Compression.none, hvd.Compression.fp16):
            for groups in (0, 2):
                results = self.shared(compression=compression, num_groups=groups)
                self.assertEqual(results[0].dtype, np.float32)
                self.check_all(results, self.whole(), 2e-3)

    def reduced_gradients(self, compression, groups, dtype='float32'):
        """Returns the gradients that a trainer has reduced. float32 can represent the original ones
        exactly, float16 cannot."""
        network = make_network()
        network.cast(dtype)
        named = [each for _, each in sorted(network.collect_params().items())]
        trainer = hvd.DistributedTrainer(network.collect_params(), 'sgd', compression=compression,
                                         num_groups=groups)
        for each in named:
            each.grad()[:] = 1 + 2.0 ** -14
        trainer.allreduce_grads()
        return [each.grad().asnumpy() for each in named]

    def test_halves_are_rounded_and_other_dtypes_stay(self):
        expected = 1.0 if hvd.size() > 1 else 1 + 2.0 ** -14
        for groups in (0, 2):
            for dtype in ('float32', 'float64'):
                for result in self.reduced_gradients(FP16Compressor, groups, dtype):
                    self.assertEqual(result.dtype, dtype)
                    np.testing.assert_array_equal(result, np.full_like(result, expected))

    def test_derived_compressors_are_called(self):
        class Derived(FP16Compressor):
            calls = []

            @classmethod
            def compress(cls, tensor):
                cls.calls.append('compress')
                return tensor * 2, None

            @classmethod
            def decompress(cls, tensor, ctx):
                cls.calls.append('decompress')
                return tensor / 2

        for groups in (0, 2):
            for result in self.reduced_gradients(Derived, groups):
                np.testing.assert_allclose(result, 1 + 2.0 ** -14, rtol=1e-6)
            count = 4 if hvd.size() > 1 else 0
            self.assertEqual(sorted(Derived.calls), ['compress'] * count + ['decompress'] * count)
            Derived.calls.clear()

    def test_compressors_work_alone(self):
        whole = mine((6,))
        for compressor, dtype in ((NoneCompressor, np.float32), (FP16Compressor, np.float16)):
            self.assertTrue(issubclass(compressor, Compressor))
            small, context = compressor.compress(whole)
            self.assertEqual(small.dtype, dtype)
            self.check(compressor.decompress(small, context), values(hvd.rank(), (6,)))

    def test_two_trainers_with_prefixes_share_a_step(self):
        networks = [make_network(), make_network()]
        trainers = [hvd.DistributedTrainer(network.collect_params(), 'sgd', prefix=prefix)
                    for network, prefix in zip(networks, ('first.', 'second.'))]
        pairs = list(zip(networks, trainers))
        for step in range(STEPS):
            for network, _ in pairs:
                backward(network, step, [hvd.rank()])
            for _, trainer in pairs:
                trainer.step(BATCH)
        for network in networks:
            self.check_all(parameters(network), self.whole())

    def test_frozen_parameters_are_left_out(self):
        network = make_network()
        network[0].weight.grad_req = 'null'
        before = network[0].weight.data().asnumpy()
        trainer = hvd.DistributedTrainer(network.collect_params(), 'sgd')
        train(network, trainer, [hvd.rank()])
        self.assertTrue((network[0].weight.data().asnumpy() == before).all())

    def test_gradients_may_be_looked_at_between_averaging_and_update(self):
        network = make_network()
        trainer = hvd.DistributedTrainer(network.collect_params(), 'sgd')
        backward(network, 0, [hvd.rank()])
        trainer.allreduce_grads()
        gradient = network[1].bias.grad().asnumpy()
        self.check_all(hvd.allgather(array(gradient).expand_dims(0)).asnumpy(), [gradient] * hvd.size())
        trainer.update(BATCH)

    def test_a_distributed_optimizer_is_unwrapped(self):
        network = make_network()
        wrapped = hvd.DistributedOptimizer(mx.optimizer.SGD())
        with self.assertWarnsRegex(UserWarning, 'We have unwrapped it for you'):
            trainer = hvd.DistributedTrainer(network.collect_params(), wrapped)
        self.assertNotIsInstance(trainer.optimizer, hvd.DistributedOptimizer)
        with self.assertRaisesRegex(ValueError, 'prefix must be a string'):
            hvd.DistributedTrainer(network.collect_params(), 'sgd', prefix=3)

    def test_sparse_gradients_are_refused(self):
        if hvd.size() == 1:
            self.skipTest('one rank has nothing to share')
        embedding = gluon.nn.Embedding(4, 2, sparse_grad=True)
        embedding.initialize()
        trainer = hvd.DistributedTrainer(embedding.collect_params(), 'sgd')
        with autograd.record():
            output = embedding(mx.nd.array([1, 2]))
        output.backward()
        with self.assertRaisesRegex(ValueError, 'row_sparse is not supported'):
            trainer.step(1)

    def test_optimizer_averages_one_by_one_and_at_once(self):
        expected = self.whole(settings={'learning_rate': 0.1})
        for at_once in (False, True):
            for groups in (0, 2):
                network, states = make_network(), {}
                optimizer = hvd.DistributedOptimizer(
                    mx.optimizer.SGD(learning_rate=0.1, rescale_grad=1 / BATCH),
                    num_groups=groups)
                for step in range(STEPS):
                    backward(network, step, [hvd.rank()])
                    update_all(network, optimizer, states, at_once)
                self.check_all(parameters(network), expected)

    def test_an_optimizer_has_the_attributes_of_the_given_one(self):
        given = mx.optimizer.Adam(learning_rate=0.5)
        optimizer = hvd.DistributedOptimizer(given)
        self.assertIsInstance(optimizer, mx.optimizer.Optimizer)
        self.assertEqual((optimizer.beta1, optimizer.learning_rate), (given.beta1, 0.5))
        optimizer.set_learning_rate(0.25)
        optimizer.rescale_grad = 0.125
        optimizer.set_lr_mult({0: 2.0})
        optimizer.set_wd_mult({0: 3.0})
        self.assertEqual((given.lr, given.rescale_grad, given.lr_mult[0], given.wd_mult[0]),
                         (0.25, 0.125, 2.0, 3.0))
        for copied in (copy.copy(optimizer), pickle.loads(pickle.dumps(given))):
            self.assertEqual(copied.learning_rate, 0.25)
        with self.assertRaisesRegex(ValueError, 'DistributedOptimizer already'):
            hvd.DistributedOptimizer(optimizer)

    def test_a_module_can_be_trained_with_the_optimizer(self):
        data = mx.sym.Variable('data')
        symbol = mx.sym.LinearRegressionOutput(
            mx.sym.FullyConnected(data, num_hidden=2, name='layer'), name='target')
        module = mx.mod.Module(symbol, label_names=['target_label'])
        module.bind([('data', (BATCH, 5))], [('target_label', (BATCH, 2))])
        mx.random.seed(hvd.rank())
        module.init_params(mx.init.Uniform(0.5))
        arguments, _ = module.get_params()
        hvd.broadcast_parameters(arguments)
        module.set_params(*module.get_params())
        optimizer = hvd.DistributedOptimizer(mx.optimizer.SGD(rescale_grad=1 / BATCH))
        with warnings.catch_warnings():
            warnings.simplefilter('ignore')
            module.init_optimizer(kvstore=None, optimizer=optimizer)
        for step in range(STEPS):
            inputs, targets = batch(step, [hvd.rank()])
            module.forward_backward(mx.io.DataBatch([inputs], [targets]))
            module.update()
        weight = module.get_params()[0]['layer_weight']
        for other in hvd.allgather(weight.expand_dims(0)):
            self.assertTrue((other.asnumpy() == weight.asnumpy()).all())

    def test_ranks_outside_of_the_set_train_alone(self):
        if hvd.size() == 1:
            self.skipTest('needs two ranks')
        hvd.shutdown()
        hvd.init(process_sets='dynamic')
        members = hvd.add_process_set([0])
        network = make_network()
        trainer = hvd.DistributedTrainer(network.collect_params(), 'sgd', process_set=members)
        alone = make_network()
        expected = train(alone, gluon.Trainer(alone.collect_params(), 'sgd', kvstore=None),
                         [hvd.rank()])
        self.check_all(train(network, trainer, [hvd.rank()]), expected)
        hvd.remove_process_set(members)


class Broadcasts(Case):

    def check_root(self, network, root):
        expected = parameters(make_network(seed=root))
        for result, right in zip(parameters(network), expected):
            self.assertTrue((result == right).all())

    def test_parameters_come_from_the_root(self):
        root = hvd.size() - 1
        for form in (lambda network: network.collect_params(),
                     lambda network: dict(network.collect_params()),
                     lambda network: {name: each.data() for name, each
                                      in network.collect_params().items()}):
            network = make_network(seed=hvd.rank())
            hvd.broadcast_parameters(form(network), root_rank=root, prefix='some.')
            self.check_root(network, root)

    def test_parameters_without_a_shape_come_from_the_root_later(self):
        network = make_network(hvd.rank(), shape_is_known=False)
        hvd.broadcast_parameters(network.collect_params(), root_rank=0)
        network(mx.nd.ones((1, 5)))
        results = parameters(network)
        for mine_, roots in zip(results, hvd.broadcast_object(results)):
            self.assertTrue((mine_ == roots).all())
        self.assertGreater(abs(results[1]).max(), 0)
        if hvd.rank() == 0:  # a second initialisation starts no broadcast: rank 0 may do it alone
            network.initialize(mx.init.One(), force_reinit=True)
            self.assertEqual(parameters(network)[1].min(), 1)  # the weights are ones

    def test_arguments_that_are_not_parameters_are_rejected(self):
        for wrong in ([mx.nd.ones((2,))], mx.nd.ones((2,)), {'text': 'text'}):
            with self.assertRaises(ValueError):
                hvd.broadcast_parameters(wrong)
        with self.assertRaisesRegex(ValueError, 'prefix must be a string'):
            hvd.broadcast_parameters({}, prefix=3)

    def test_objects_can_be_broadcast_and_gathered(self):
        root = hvd.size() - 1
        sent = {'array': values(hvd.rank(), (3,)), 'rank': hvd.rank()}
        self.assertEqual(hvd.broadcast_object(sent, root_rank=root, name='sent')['rank'], root)
        gathered = hvd.allgather_object('x' * hvd.rank(), name='gathered')
        self.assertEqual(gathered, ['x' * rank for rank in range(hvd.size())])
