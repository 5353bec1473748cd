# SPDX-License-Identifier: Apache-2.0
"""The state of a training, and the failures after which it restarts, in a job that is not
elastic."""

import os
from unittest import mock

import numpy as np
import tensorflow as tf

import horovod.tensorflow as hvd
from horovod.common.exceptions import HorovodInternalError
from tf.case import Case, array

STATE_OF_OTHERS = 'differ between ranks'


def make(seed):
    return [tf.Variable(np.full((3, 2), seed, np.float32)), tf.Variable(seed + 0.5)]


class States(Case):

    def check_values(self, variables, seed):
        self.check(variables[0], np.full((3, 2), seed, np.float32))
        self.check(variables[1], np.float32(seed + 0.5))

    def test_variables_go_back_to_the_last_commit(self):
        variables = make(1)
        state = hvd.elastic.TensorFlowState(variables, epoch=0)

        @tf.function
        def step():
            for each in variables:
                each.assign_add(tf.ones_like(each))

        step()
        state.epoch = 1
        state.commit()
        for _ in range(2):
            step()
            variables[1].assign_add(5.0)
            state.epoch = 9
            state.restore()
            self.check_values(variables, 2)
            self.assertEqual(state.epoch, 1)

    def test_save_keeps_variables_without_a_commit(self):
        variables = make(1)
        model = tf.keras.Sequential([tf.keras.layers.InputLayer((4,)), tf.keras.layers.Dense(1)])
        states = [hvd.elastic.TensorFlowState(variables),
                  hvd.elastic.TensorFlowKerasState(model, tf.keras.optimizers.SGD(0.1))]
        variables[1].assign(5.5)
        model.set_weights([np.ones((4, 1)), np.ones(1)])
        for state in states:
            state.save()
        variables[1].assign(9.5)
        model.set_weights([np.zeros((4, 1)), np.zeros(1)])
        for state in states:
            state.restore()
        self.check(variables[1], np.float32(5.5))
        self.assertEqual(float(np.sum(model.get_weights()[0])), 4)

    def test_sync_takes_rank_0s_variables(self):
        variables = make(hvd.rank())
        state = hvd.elastic.TensorFlowState(variables=variables, epoch=hvd.rank())
        variables[0].assign_add(tf.ones((3, 2)))
        variables[1].assign_add(1.0)
        state.sync()
        self.check_values(variables, 1)
        self.assertEqual(state.epoch, 0)
        variables[1].assign(99.0)
        state.restore()
        self.check_values(variables, 1)

    def test_other_variables_than_rank_0s_are_refused(self):
        variables = make(0)
        if hvd.rank() > 0:
            variables.append(tf.Variable(1.0))
        state = hvd.elastic.TensorFlowState(variables)
        if hvd.rank() > 0:
            with self.assertRaisesRegex(ValueError, STATE_OF_OTHERS):
                state.sync()
            # Take part in the broadcasts of rank 0, whose sync() has no error.
            hvd.broadcast_variables(make(0), 0)
            hvd.broadcast_object(None)
        else:
            state.sync()
            hvd.broadcast_object(None)

    def test_the_variables_of_a_session_are_saved(self):
        with tf.Graph().as_default(), tf.compat.v1.Session() as session:
            first = tf.compat.v1.get_variable('a', initializer=np.float32([hvd.rank()]),
                                              use_resource=True)
            second = tf.compat.v1.get_variable('b', initializer=np.float32(7 + hvd.rank()),
                                               use_resource=False)
            session.run(tf.compat.v1.global_variables_initializer())
            state = hvd.elastic.TensorFlowState(session=session, epoch=hvd.rank())
            add = [each.assign_add(tf.ones_like(each)) for each in (first, second)]
            for _ in range(2):
                session.run(add)
                state.sync()
                kept = session.run([first, second])
                session.run(add)
                state.restore()
                self.assertEqual(session.run([first, second]), kept)
            self.check(kept[0], np.float32([2]))
            self.check(kept[1], np.float32(9))
            self.assertEqual(state.epoch, 0)

    def test_a_session_may_be_of_another_graph_than_the_default_one(self):
        with tf.Graph().as_default():
            only = tf.compat.v1.get_variable('only', initializer=np.float32([1 + hvd.rank()]))
            begin = tf.compat.v1.global_variables_initializer()
            session = tf.compat.v1.Session()
            add = only.assign_add([5.0])
        session.run(begin)
        state = hvd.elastic.TensorFlowState(session=session)
        state.sync()
        session.run(add)
        state.restore()
        self.assertEqual(session.run(only).tolist(), [1])
        session.close()

    def test_a_state_without_variables_is_refused(self):
        for arguments in ({}, {'variables': []}, {'session': tf.compat.v1.Session(
                graph=tf.Graph())}):
            with self.assertRaisesRegex(ValueError, 'there are no variables to save'):
                hvd.elastic.TensorFlowState(epoch=0, **arguments)

    def test_variables_that_changed_after_the_commit_do_not_go_back(self):
        variables = make(1)
        state = hvd.elastic.TensorFlowState(variables)
        variables.append(tf.Variable([4.0]))
        with self.assertRaisesRegex(ValueError, r'2 were saved, there are 3 now.*number 2: shape '
                                                r"\[\] then, \['\(1,\)'\] now.*state.save\(\)"):
            state.restore()
        state.save()
        variables[2].assign([9.0])
        state.restore()
        self.check(variables[2], np.float32([4]))

    def test_a_model_of_keras_is_kept(self):
        tf.keras.utils.set_random_seed(hvd.rank())
        model = tf.keras.Sequential([tf.keras.layers.InputLayer((4,)), tf.keras.layers.Dense(1)])
        model.compile(optimizer=tf.keras.optimizers.Adam(0.1), loss='mse')
        state = hvd.elastic.TensorFlowKerasState(model, backend=tf.keras.backend, batch=hvd.rank())
        state.sync()
        kept = model.get_weights()
        for other in hvd.allgather_object((kept, state.batch)):
            for mine, each in zip(kept, other[0]):
                np.testing.assert_array_equal(mine, each)
            self.assertEqual(other[1], 0)
        model.fit(tf.ones((4, 4)), tf.ones((4, 1)), verbose=0)
        self.assertEqual(int(array(model.optimizer.iterations)), 1)
        state.restore()
        for mine, each in zip(kept, model.get_weights()):
            np.testing.assert_array_equal(mine, each)
        self.assertEqual(int(array(model.optimizer.iterations)), 0)


class Failures(Case):

    def setUp(self):
        if hvd.size() < 2:
            self.skipTest('one rank leaves nobody waiting')

    def tearDown(self):
        hvd.shutdown()
        hvd.init()

    def outlive(self, collective):
        """Makes a collective of the other ranks fail, because rank 0 calls shutdown(). Returns the
        text of the HorovodInternalError that hvd.elastic.run passes on."""
        @hvd.elastic.run
        def train(state):
            if hvd.rank() == 0:
                hvd.shutdown()
                raise HorovodInternalError('left')
            collective()

        with self.assertRaises(HorovodInternalError) as raised:
            train(hvd.elastic.TensorFlowState(make(0)))
        return str(raised.exception)

    def test_the_end_of_the_job_is_an_internal_error(self):
        self.outlive(lambda: hvd.allreduce(tf.ones((3,))))

    def test_the_end_of_the_job_is_an_internal_error_in_named_nodes_of_a_graph(self):
        self.outlive(tf.function(lambda: hvd.allgather(tf.ones((3,)), name='own')))

    def test_other_errors_stay_as_they_are(self):
        @hvd.elastic.run
        def train(state, error):
            raise error

        for error in (tf.errors.UnknownError(None, None, 'a disk failed [[HorovodJoin_1]]'),
                      tf.errors.FailedPreconditionError(None, None, 'HorovodAllreduce'),
                      KeyError('x')):
            with self.assertRaises(type(error)):
                train(hvd.elastic.TensorFlowState(make(0)), error)

    def test_ranks_that_disagree_are_told_so(self):
        def differ():
            return hvd.allreduce(tf.ones((3 + hvd.rank(),)), name='shape')

        @hvd.elastic.run
        def train(state, collective):
            collective()

        for collective, kind in ((differ, tf.errors.FailedPreconditionError),
                                 (tf.function(differ), tf.errors.FailedPreconditionError)):
            with self.assertRaisesRegex(kind, 'tensor shapes'):
                train(hvd.elastic.TensorFlowState(make(0)), collective)


class Graphs(Case):

    def test_a_graph_that_outlives_ranks_uses_the_current_size(self):
        layer = hvd.SyncBatchNormalization()
        layer.build((None, 1))

        @tf.function
        def work(rows):
            tape = tf.GradientTape()
            with tape:
                loss = tf.reduce_sum(tf.gather(table, [0]) * 6.0) + 6.0 * local
            tape = hvd.DistributedGradientTape(tape)
            tape.register_local_source(local)
            sparse, own = tape.gradient(loss, [table, local])
            return tf.convert_to_tensor(sparse)[0, 0], own, layer(rows, training=True)

        table, local = tf.Variable(tf.ones((2, 1))), tf.Variable(1.0)
        rank, size = hvd.rank(), hvd.size()
        rows = tf.constant([[2.0 ** rank]])  # no rank has the mean of all ranks
        with mock.patch.dict(os.environ, {'HOROVOD_ELASTIC': '1'}):
            sparse, own, normal = work(rows)
        self.check(sparse, np.float32(6))
        self.check(own, np.float32(6 / size))
        hvd.shutdown()
        hvd.init(comm=[rank])
        sparse, own, alone = work(rows)
        self.check(sparse, np.float32(6))
        self.check(own, np.float32(6))
        self.check(alone, np.zeros((1, 1), np.float32))
        if size > 1:
            self.assertNotEqual(float(normal[0, 0]), 0)
        hvd.shutdown()
        hvd.init()
