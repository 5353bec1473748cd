# SPDX-License-Identifier: Apache-2.0
"""A graph may have only one thread, and may run its nodes in a different order on each rank."""

import random

import tensorflow as tf

tf.config.threading.set_inter_op_parallelism_threads(1)
tf.config.threading.set_intra_op_parallelism_threads(1)

import horovod.tensorflow as hvd
from horovod.tensorflow.native import nodes_wait
from tf.case import Case, reduced, values

COUNT = 30


def chain(order, inputs):
    """Builds allreduces that start in this order, because each waits for a small computation after
    the previous one."""
    results, before = {}, []
    for index in order:
        with tf.control_dependencies(before):
            work = tf.reduce_sum(tf.sqrt(inputs[index]))
        before = [work]
        with tf.control_dependencies(before):
            mine = tf.identity(inputs[index])
        results[index] = hvd.allreduce(mine, op=hvd.Sum, name=f'order.{index}')
    return [results[index] for index in range(len(inputs))]


class Order(Case):

    def setUp(self):
        if nodes_wait:
            self.skipTest('a node of TensorFlow before 2.13 keeps its thread while it waits')

    def order(self):
        order = list(range(COUNT))
        random.Random(hvd.rank()).shuffle(order)  # a different order on each rank
        return order

    def check_all(self, results):
        for salt, result in enumerate(results):
            self.check(result, reduced(hvd.Sum, (9,), salt=salt))

    def test_each_rank_may_have_its_own_order_in_a_function(self):
        inputs = [tf.Variable(values(hvd.rank(), (9,), salt=salt)) for salt in range(COUNT)]
        together = tf.function(lambda: chain(self.order(), [each.read_value()
                                                            for each in inputs]))
        for _ in range(4):
            self.check_all(together())

    def test_each_rank_may_have_its_own_order_in_a_session(self):
        with tf.Graph().as_default():
            inputs = [tf.constant(values(hvd.rank(), (9,), salt=salt)) for salt in range(COUNT)]
            results = chain(self.order(), inputs)
            config = tf.compat.v1.ConfigProto(inter_op_parallelism_threads=1,
                                              intra_op_parallelism_threads=1)
            with tf.compat.v1.Session(config=config) as session:
                for _ in range(4):
                    self.check_all(session.run(results))

    def test_a_chain_goes_on_behind_one_that_has_to_wait(self):
        """Even ranks start the allreduce crossing.x first; odd ranks can start it only after a
        chain of other allreduces."""
        mine = tf.Variable(values(hvd.rank(), (9,)))

        @tf.function
        def crossing():
            late = hvd.rank() % 2 == 1
            first = None if late else hvd.allreduce(mine, op=hvd.Sum, name='crossing.x')
            chained = mine.read_value()
            for link in range(5):
                chained = hvd.allreduce(chained, name=f'crossing.{link}')
            if late:
                with tf.control_dependencies([chained]):
                    first = hvd.allreduce(mine.read_value(), op=hvd.Sum, name='crossing.x')
            return first

        for _ in range(5):
            self.check(crossing(), reduced(hvd.Sum, (9,)))
