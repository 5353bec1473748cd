# SPDX-License-Identifier: Apache-2.0
"""Training: N ranks, each with a part of a batch, train like one rank with the whole batch."""

import numpy as np
import tensorflow as tf

import horovod.tensorflow as hvd
from tf.case import Case, array, values

BATCH = 8
RATE = 0.125  # exact in float32 and float64


class Network:
    """Two dense layers, the same on all ranks."""

    def __init__(self):
        random = np.random.RandomState(7)
        self.weights = [tf.Variable(random.randn(*shape)) for shape in ((5, 16), (16, 1))]

    def loss(self, x, y):
        hidden = tf.tanh(x @ self.weights[0])
        return tf.reduce_mean(tf.square(hidden @ self.weights[1] - y))


def batches(size, steps=6):
    random = np.random.RandomState(11)
    for _ in range(steps):
        x = random.randn(BATCH * size, 5)
        yield x, np.sin(x.sum(1, keepdims=True))


def own(data):
    """Returns this rank's rows."""
    begin = hvd.rank() * BATCH
    return [tf.constant(each[begin:begin + BATCH]) for each in data]


def step(network, wrap, x, y):
    with tf.GradientTape() as tape:
        loss = network.loss(x, y)
    gradients = wrap(tape).gradient(loss, network.weights)
    for weight, gradient in zip(network.weights, gradients):
        weight.assign_sub(RATE * gradient)
    return loss


class Training(Case):

    def expected(self):
        network = Network()
        for x, y in batches(hvd.size()):
            step(network, lambda tape: tape, tf.constant(x), tf.constant(y))
        return network.weights

    def check_like(self, weights, expected):
        for each, right in zip(weights, expected):
            np.testing.assert_allclose(array(each), array(right), rtol=1e-9, atol=1e-12)

    def test_a_tape_trains_as_one_rank_with_the_whole_batch(self):
        settings = [{}, {'groups': 1}, {'gradient_predivide_factor': 3.0}]
        for options in settings:
            for compiled in (False, True):
                network = Network()

                def train(x, y):
                    return step(network, lambda tape: hvd.DistributedGradientTape(
                        tape, **options), x, y)

                run = tf.function(train) if compiled else train
                for data in batches(hvd.size()):
                    run(*own(data))
                self.check_like(network.weights, self.expected())

    def test_groups_of_variables_are_reduced_together(self):
        network = Network()
        for data in batches(hvd.size()):
            step(network, lambda tape: hvd.DistributedGradientTape(
                tape, groups=[network.weights]), *own(data))
        self.check_like(network.weights, self.expected())
        for wrong in (-1, [network.weights[0]], [network.weights, network.weights]):
            with self.assertRaises(ValueError):
                hvd.DistributedGradientTape(tf.GradientTape(), groups=wrong)

    def test_an_optimizer_of_tensorflow_1_trains_in_a_session(self):
        for passes in (1, 2):
            with tf.Graph().as_default():
                network = Network()
                x = tf.compat.v1.placeholder(tf.float64, (None, 5))
                y = tf.compat.v1.placeholder(tf.float64, (None, 1))
                optimizer = hvd.DistributedOptimizer(
                    tf.compat.v1.train.GradientDescentOptimizer(RATE),
                    backward_passes_per_step=passes, average_aggregated_gradients=True)
                train = optimizer.minimize(network.loss(x, y), var_list=network.weights)
                hooks = [hvd.BroadcastGlobalVariablesHook(0)]
                with tf.compat.v1.train.MonitoredTrainingSession(hooks=hooks) as session:
                    for data in batches(hvd.size()):
                        data = [each[hvd.rank() * BATCH:][:BATCH] for each in data]
                        half = BATCH // passes
                        for part in range(passes):
                            session.run(train, {x: data[0][part * half:][:half],
                                                y: data[1][part * half:][:half]})
                    weights = session.run(network.weights)
            self.check_like(weights, self.expected())

    def test_an_optimizer_of_tensorflow_1_counts_all_passes(self):
        passes = 3
        with tf.Graph().as_default(), tf.compat.v1.Session() as session:
            steps = tf.compat.v1.train.get_or_create_global_step()
            variable = tf.Variable([0.0])
            optimizer = hvd.DistributedOptimizer(
                tf.compat.v1.train.GradientDescentOptimizer(1.0),
                backward_passes_per_step=passes, average_aggregated_gradients=True)
            train = optimizer.minimize(variable * (hvd.rank() + 1.0), global_step=steps)
            session.run(tf.compat.v1.global_variables_initializer())
            for done in range(1, 2 * passes + 2):
                session.run(train)
                self.assertEqual(session.run(steps), done)
                self.check(session.run(variable),
                           np.float32([-(done // passes) * (hvd.size() + 1) / 2]))

    def test_adasum_of_equal_steps_is_the_step(self):
        if hvd.size() & (hvd.size() - 1):
            self.skipTest('Adasum needs a power of two of ranks')
        network = Network()
        optimizer = hvd.DistributedOptimizer(
            tf.compat.v1.train.GradientDescentOptimizer(RATE), op=hvd.Adasum)
        right = Network()
        for x, y in batches(1):
            optimizer.minimize(lambda: network.loss(x, y), var_list=network.weights)
            step(right, lambda tape: tape, tf.constant(x), tf.constant(y))
        self.check_like(network.weights, right.weights)

    def test_local_sources_keep_their_own_gradients(self):
        first, second = tf.Variable([1.0]), tf.Variable([1.0])
        for scales in (True, False):
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum((first + second) * (hvd.rank() + 1.0))
            tape = hvd.DistributedGradientTape(tape, scale_local_gradients=scales)
            tape.register_local_source(second)
            shared, local = tape.gradient(loss, [first, second])
            self.check(shared, np.float32([(hvd.size() + 1) / 2]))
            self.check(local, np.float32([(hvd.rank() + 1) / (hvd.size() if scales else 1)]))

    def test_the_weights_of_local_layers_keep_their_own_gradients(self):
        layer = tf.keras.layers.Dense(1, use_bias=False, kernel_initializer='ones')
        layer.build((None, 1))
        shared = tf.Variable([[1.0]])
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(layer(shared) * (hvd.rank() + 1.0))
        tape = hvd.PartialDistributedGradientTape(tape, local_layers=layer)
        gradients = tape.gradient(loss, [shared, layer.trainable_weights[0]])
        self.check(gradients[0], np.float32([[(hvd.size() + 1) / 2]]))
        self.check(gradients[1], np.float32([[(hvd.rank() + 1) / hvd.size()]]))
        with self.assertRaises(ValueError):
            hvd.PartialDistributedGradientTape(tf.GradientTape(), local_layers=[3])

    def test_local_and_shared_gradients_can_be_told_apart(self):
        first, second = tf.Variable([1.0]), tf.Variable([1.0])
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum((first + second) * (hvd.rank() + 1.0))
        tape = hvd.DistributedGradientTape(tape, scale_local_gradients=False)
        self.assertIsInstance(tape, hvd._DistributedGradientTape)
        tape.register_local_source(second)
        local, shared = tape.get_local_and_global_gradients(loss, [first, second])
        self.assertEqual([len(local), len(shared)], [1, 1])
        self.assertIs(local[0][0], second)
        self.assertIs(shared[0][0], first)
        self.check(local[0][1], np.float32([hvd.rank() + 1]))
        self.check(shared[0][1], np.float32([(hvd.size() + 1) / 2]))

    def test_a_local_variable_of_an_optimizer_keeps_its_own_gradient(self):
        first, second = tf.Variable([0.0]), tf.Variable([0.0])
        optimizer = hvd.DistributedOptimizer(tf.compat.v1.train.GradientDescentOptimizer(1.0),
                                             scale_local_gradients=False)
        self.assertIsInstance(optimizer, hvd._DistributedOptimizer)
        optimizer.register_local_var(second)
        optimizer.minimize(lambda: tf.reduce_sum((first + second) * (hvd.rank() + 1.0)),
                           var_list=[first, second])
        self.check(first, np.float32([-(hvd.size() + 1) / 2]))
        self.check(second, np.float32([-(hvd.rank() + 1)]))

    def test_gradients_keep_the_structure_of_the_sources(self):
        sources = {'a': tf.Variable(1.0), 'b': [tf.Variable(2.0), tf.Variable(3.0)]}
        with tf.GradientTape() as tape:
            loss = sources['a'] * sources['b'][0]
        result = hvd.DistributedGradientTape(tape).gradient(loss, sources)
        self.assertEqual([float(result['a']), float(result['b'][0]), result['b'][1]],
                         [2.0, 1.0, None])

    def test_sparse_gradients_can_be_reduced_densely(self):
        table = tf.Variable(tf.ones((8, 2)))
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.gather(table, [hvd.rank(), 7]))
        tape = hvd.DistributedGradientTape(tape, sparse_as_dense=True, op=hvd.Sum)
        gradient = tape.gradient(loss, table)
        right = np.zeros((8, 2), np.float32)
        right[:hvd.size()] = 1
        right[7] += hvd.size()
        self.check(gradient, right)

    def test_batch_normalization_is_that_of_the_whole_batch(self):
        whole = np.concatenate([values(rank, (4, 3)) + rank for rank in range(hvd.size())])
        mine = tf.Variable(whole[hvd.rank() * 4:][:4])
        layer = hvd.SyncBatchNormalization(epsilon=1e-3)
        reference = tf.keras.layers.BatchNormalization(epsilon=1e-3)
        for each in (layer, reference):
            each.build((None, 3))
        factors = tf.constant(values(1, whole.shape))
        with tf.GradientTape() as tape:
            output = layer(mine, training=True)
            loss = tf.reduce_sum(output * factors[hvd.rank() * 4:][:4])
        gradient = tape.gradient(loss, mine)
        everything = tf.Variable(whole)
        with tf.GradientTape() as tape:
            right = reference(everything, training=True)
            loss = tf.reduce_sum(right * factors)
        right_gradient = tape.gradient(loss, everything)
        part = slice(hvd.rank() * 4, hvd.rank() * 4 + 4)
        np.testing.assert_allclose(output, right[part], rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(gradient, right_gradient[part], rtol=1e-3, atol=1e-4)
        np.testing.assert_allclose(array(layer.moving_mean), array(reference.moving_mean),
                                   rtol=1e-5)
        with self.assertRaises(ValueError):
            hvd.SyncBatchNormalization(fused=True)

    def test_variables_get_the_values_of_the_root(self):
        variables = [tf.Variable(values(hvd.rank(), (3, 2), salt=salt)) for salt in range(3)]
        hvd.broadcast_variables(variables, root_rank=hvd.size() - 1)
        for salt, each in enumerate(variables):
            self.check(each, values(hvd.size() - 1, (3, 2), salt=salt))
        layer = tf.keras.layers.Dense(3)
        layer.build((None, 2))
        hvd.broadcast_variables(layer.weights, root_rank=0)
        first, *others = hvd.allgather_object([array(each) for each in layer.weights])
        for other in others:
            for each in zip(first, other):
                np.testing.assert_array_equal(*each)
        with self.assertRaises(RuntimeError):
            hvd.broadcast_global_variables(0)

    def test_variables_of_several_kinds_are_broadcast_in_their_place(self):
        layer = tf.keras.layers.Dense(1, use_bias=False)
        layer.build((None, 1))
        variables = [tf.Variable([[0.0]]), *layer.weights]
        for broadcast in (hvd.broadcast_, lambda *arguments: hvd.broadcast_variables(
                *arguments, inplace=True)):
            for each in variables:
                each.assign([[float(hvd.rank())]])
            broadcast(variables, hvd.size() - 1)
            for each in variables:
                self.check(each, np.float32([[hvd.size() - 1]]))

    def test_objects_can_be_broadcast_and_gathered(self):
        mine = {'rank': hvd.rank(), 'text': 'x' * (1000 * hvd.rank())}
        self.assertEqual(hvd.broadcast_object(mine, hvd.size() - 1)['rank'], hvd.size() - 1)
        self.assertEqual(hvd.broadcast_object_fn(0)(mine)['rank'], 0)
        self.assertEqual([each['rank'] for each in hvd.allgather_object(mine)],
                         list(range(hvd.size())))
