# SPDX-License-Identifier: Apache-2.0
"""The state of a training with Keras, the callbacks that commit it, and the restart, in a job that
is not elastic."""

import numpy
from keras_case import Case, apply, hvd, keras, network, optimizer_kinds, sgd, to_numpy, variable

from horovod.common.elastic import HOSTS_ADDED
from horovod.common.objects import allgather_object

STEPS = 4
INPUTS = numpy.linspace(-1, 1, 2 * STEPS * 4, dtype='float32').reshape(-1, 4)
TARGETS = INPUTS.sum(1, keepdims=True)


def compiled(optimizer, seed=0):
    model = network(seed)
    model.compile(optimizer=optimizer, loss='mse')
    return model


def fit(model, *callbacks, epochs=1, **arguments):
    model.fit(INPUTS, TARGETS, batch_size=2, shuffle=False, verbose=0, epochs=epochs,
              callbacks=list(callbacks), **arguments)


def everything(model):
    """Returns the weights and the optimizer's state."""
    found = model.optimizer.variables
    return [to_numpy(each).copy()
            for each in [*model.weights, *(found() if callable(found) else found)]]


class States(Case):

    def check_equal(self, found, expected):
        self.assertEqual(len(found), len(expected))
        for mine, other in zip(found, expected):
            self.assertEqual(mine.tobytes(), other.tobytes())

    def test_model_and_optimizer_go_back_to_the_last_commit(self):
        for name, module in optimizer_kinds():
            with self.subTest(name):
                model = compiled(hvd.DistributedOptimizer(module.Adam(0.1)))
                state = hvd.elastic.KerasState(model, epoch=0)
                fit(model)
                state.epoch = 1
                state.commit()
                kept = everything(model)
                for _ in range(2):
                    fit(model, epochs=2)
                    state.epoch = 5
                    self.assertNotEqual(everything(model)[0].tolist(), kept[0].tolist())
                    state.restore()
                    self.check_equal(everything(model), kept)
                    self.assertEqual(state.epoch, 1)

    def test_a_model_that_was_never_trained_goes_back_too(self):
        model = compiled(hvd.DistributedOptimizer(keras.optimizers.Adam(0.1)))
        state = hvd.elastic.KerasState(model)
        kept = everything(model)
        fit(model)
        state.restore()
        self.check_equal(everything(model), kept)

    def test_sync_takes_rank_0s_model_and_optimizer(self):
        for name, module in optimizer_kinds():
            with self.subTest(name):
                optimizer = module.SGD(0.1 / (hvd.rank() + 1), momentum=0.5)
                model = compiled(optimizer, seed=hvd.rank())
                state = hvd.elastic.KerasState(model, optimizer, epoch=10 + hvd.rank())
                fit(model)
                state.sync()
                mine = (everything(model), float(to_numpy(optimizer.learning_rate)), state.epoch)
                first = allgather_object(mine)[0]
                self.check_equal(mine[0], first[0])
                self.assertEqual(mine[1:], first[1:])
                self.assertEqual(state.epoch, 10)
                fit(model)
                state.restore()
                self.check_equal(everything(model), first[0])

    def test_another_model_than_was_saved_is_refused(self):
        model = compiled(keras.optimizers.SGD(0.1))
        state = hvd.elastic.KerasState(model)
        larger = keras.Sequential([keras.layers.InputLayer((4,)), keras.layers.Dense(9)])
        larger.compile(optimizer='sgd', loss='mse')
        state.model, state.optimizer = larger, larger.optimizer
        with self.assertRaisesRegex(ValueError, r'changed after the last save\(\) or commit\(\)'):
            state.restore()

    def test_models_without_weights_or_optimizer_are_rejected(self):
        bare = keras.Sequential([keras.layers.Dense(1)])
        bare.compile(optimizer='sgd', loss='mse')
        with self.assertRaisesRegex(ValueError, 'Model must be built first'):
            hvd.elastic.KerasState(bare)
        with self.assertRaisesRegex(ValueError, 'no optimizer'):
            hvd.elastic.KerasState(network(0))

    def test_passes_that_made_no_step_are_forgotten(self):
        for name, module in optimizer_kinds():
            with self.subTest(name):
                optimizer = hvd.DistributedOptimizer(module.SGD(1.0), backward_passes_per_step=2)
                model, weight = network(0), variable([0.0])
                model.optimizer = optimizer
                apply(optimizer, [[100.0]], [weight])
                state = hvd.elastic.KerasState.__new__(hvd.elastic.KerasState)
                state.optimizer = optimizer
                state.reset()
                apply(optimizer, [[1.0]], [weight])
                self.check(weight, [0.0])
                apply(optimizer, [[2.0]], [weight])
                self.check(weight, [-3.0])


class Recorder(keras.callbacks.Callback):
    """Records state.epoch and state.batch after each batch and epoch."""

    def __init__(self, state):
        super().__init__()
        self.state = state
        self.seen = []

    def on_train_batch_end(self, batch, logs=None):
        self.seen.append((self.state.epoch, self.state.batch))

    def on_epoch_end(self, epoch, logs=None):
        self.seen.append((self.state.epoch, self.state.batch))


class Callbacks(Case):

    def make(self, **values):
        model = compiled(hvd.DistributedOptimizer(sgd()))
        return hvd.elastic.KerasState(model, **values)

    def test_epochs_and_batches_that_are_done_are_counted(self):
        whole = [(0, 1), (0, 2), (0, 3), (0, 4), (1, 0), (1, 1), (1, 2), (1, 3), (1, 4), (2, 0)]
        for first in (0, 3):  # the initial epoch of fit()
            state = self.make(epoch=0, batch=0)
            recorder = Recorder(state)
            fit(state.model, hvd.elastic.UpdateEpochStateCallback(state),
                hvd.elastic.UpdateBatchStateCallback(state), recorder, initial_epoch=first,
                epochs=first + 2)
            self.assertEqual(recorder.seen, whole)

    def test_counting_continues_from_the_state(self):
        state = self.make(epoch=5, batch=2)
        recorder = Recorder(state)
        fit(state.model, hvd.elastic.UpdateEpochStateCallback(state),
            hvd.elastic.UpdateBatchStateCallback(state), recorder)
        self.assertEqual(recorder.seen, [(5, 3), (5, 4), (5, 5), (5, 6), (6, 0)])

    def test_the_state_is_committed_every_few_batches_and_each_epoch(self):
        for batches, expected in ((1, 10), (3, 4), (100, 2)):
            state, commits = self.make(), []
            state.commit = lambda: commits.append(1)
            fit(state.model, hvd.elastic.CommitStateCallback(state, batches_per_commit=batches),
                epochs=2)
            self.assertEqual(len(commits), expected)


class Runs(Case):

    def test_training_continues_where_it_was_when_ranks_join(self):
        self.train_with_news_after(2)

    def test_training_continues_after_the_last_batch_of_an_epoch(self):
        self.train_with_news_after(STEPS)

    def train_with_news_after(self, batches):
        """Trains two epochs. A change of the hosts is reported after this number of batches of the
        first one."""
        model = compiled(hvd.DistributedOptimizer(keras.optimizers.SGD(0.1)), seed=hvd.rank())
        state = hvd.elastic.KerasState(model, epoch=0, batch=0)
        resets, begins, news = [], [], [batches]
        state.register_reset_callbacks([lambda: resets.append(hvd.size())])
        case = self

        class Visitor(keras.callbacks.Callback):
            def on_train_batch_end(self, batch, logs=None):
                if news and (state.epoch, state.batch) == (0, news[0]):
                    news.clear()
                    state.on_hosts_updated(0, HOSTS_ADDED)

        callbacks = [hvd.callbacks.BroadcastGlobalVariablesCallback(0),
                     hvd.elastic.UpdateEpochStateCallback(state),
                     hvd.elastic.UpdateBatchStateCallback(state), Visitor(),
                     hvd.elastic.CommitStateCallback(state)]

        @hvd.elastic.run
        def train(state):
            begins.append((state.epoch, state.batch))
            case.check_same_everywhere(state.model.get_weights())
            while state.epoch < 2:
                if state.batch == STEPS:
                    state.epoch, state.batch = state.epoch + 1, 0
                    continue
                done = 2 * state.batch
                state.model.fit(INPUTS[done:], TARGETS[done:], batch_size=2, shuffle=False,
                                verbose=0, initial_epoch=state.epoch, epochs=state.epoch + 1,
                                callbacks=callbacks)
            return 'ended'

        self.assertEqual(train(state), 'ended')
        self.assertEqual((begins, resets), ([(0, 0), (0, batches)], [hvd.size()]))
        self.assertEqual(int(to_numpy(model.optimizer.iterations)), 2 * STEPS)
        expected = compiled(keras.optimizers.SGD(0.1))
        fit(expected, epochs=2)
        for mine, other in zip(model.get_weights(), expected.get_weights()):
            self.check(mine, other)
