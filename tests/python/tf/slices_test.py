# SPDX-License-Identifier: Apache-2.0
"""tf.IndexedSlices of every type: gathered rows are divided by the number of ranks. They are not
multiplied by a factor that is rounded to the type of the values or to single precision."""

import numpy as np
import tensorflow as tf

import horovod.tensorflow as hvd
from tf.case import Case, array, in_both_modes, values

INTEGERS = [tf.uint8, tf.int8, tf.uint16, tf.int16, tf.int32, tf.int64, tf.uint32, tf.uint64]
ROWS = 6


def slices(rank, dtype, salt=0):
    """Returns two rows of a rank: one at an index of its own, and one at the last index, where all
    ranks have one."""
    return tf.IndexedSlices(tf.constant(values(rank, (2, 2), dtype, salt)),
                            tf.constant([rank % (ROWS - 1), ROWS - 1]), tf.constant([ROWS, 2]))


def total(dtype, salt=0):
    """Returns the sum of the slices of all ranks as a dense float64 array."""
    dense = np.zeros((ROWS, 2))
    for rank in range(hvd.size()):
        np.add.at(dense, [rank % (ROWS - 1), ROWS - 1], values(rank, (2, 2), dtype, salt))
    return dense


def quotient_dtype(dtype):
    """Returns the type of a quotient of two integers in TensorFlow."""
    return tf.float32 if dtype.size <= 2 else tf.float64


def dense(tensor):
    return array(tf.convert_to_tensor(tensor))


class Tape(tf.GradientTape):
    """A tape that returns given gradients, because TensorFlow computes none for integers."""

    def __init__(self, gradients):
        super().__init__()
        self._given = gradients

    def gradient(self, *args, **kwargs):
        return self._given


class Optimizer(tf.compat.v1.train.GradientDescentOptimizer):
    """An optimizer that returns given gradients."""

    def __init__(self, gradients):
        super().__init__(1.0)
        self._given = gradients

    def compute_gradients(self, variables):
        return list(zip(self._given, variables))


class Integers(Case):

    def check_average(self, result, dtype, salt=0):
        """Asserts that the result is the average, except for the rounding of each added row."""
        self.assertEqual(result.dtype, quotient_dtype(dtype))
        np.testing.assert_allclose(dense(result), total(dtype, salt) / hvd.size(), rtol=1e-6)

    def test_predivision_changes_no_average(self):
        for result in in_both_modes(lambda: hvd.allreduce(
                slices(hvd.rank(), tf.int32), prescale_factor=1 / 49, postscale_factor=49.0)):
            self.check_average(result, tf.int32)

    def test_there_is_no_average_of_booleans(self):
        mine = tf.IndexedSlices(tf.constant([True]), tf.constant([0]))
        with self.assertRaisesRegex(TypeError, 'no average of booleans'):
            hvd.allreduce(mine)

    def test_a_tape_averages_integer_slices(self):
        if hvd.size() < 2:
            self.skipTest('one rank keeps what it has')
        sources = [tf.Variable(1.0), tf.Variable(1.0)]

        def gradients():
            tape = Tape([slices(hvd.rank(), tf.int32), slices(hvd.rank(), tf.int64, 1)])
            return hvd.DistributedGradientTape(tape).gradient(None, sources)

        for first, second in in_both_modes(gradients):
            self.check_average(first, tf.int32)
            self.check_average(second, tf.int64, 1)

    def test_an_optimizer_averages_integer_slices(self):
        if hvd.size() < 2:
            self.skipTest('one rank keeps what it has')
        optimizer = hvd.DistributedOptimizer(Optimizer([slices(hvd.rank(), tf.int32)]))
        variable = tf.Variable(1.0)
        for (gradient, _), in in_both_modes(lambda: optimizer.compute_gradients([variable])):
            self.check_average(gradient, tf.int32)

    def test_local_sources_are_divided_too(self):
        if hvd.size() < 2:
            self.skipTest('one rank keeps what it has')
        source = tf.Variable(1.0)
        for given in (slices(hvd.rank(), tf.int32), tf.constant([3, 4])):
            tape = hvd.DistributedGradientTape(Tape([given]))
            tape.register_local_source(source)
            result, = tape.gradient(None, [source])
            self.assertEqual(result.dtype, tf.float64)
            np.testing.assert_allclose(dense(result), dense(given) / hvd.size(), rtol=1e-15)


class Floats(Case):

    def test_double_precision_is_kept(self):
        mine = tf.IndexedSlices(tf.constant([0.3, 0.7], tf.float64), tf.constant([0, 1]))
        for result in in_both_modes(lambda: hvd.allreduce(mine, prescale_factor=0.1)):
            np.testing.assert_allclose(result.values.numpy(),
                                       [0.03 / hvd.size(), 0.07 / hvd.size()] * hvd.size(),
                                       rtol=1e-15)

    def test_an_average_of_16_bits_is_rounded_once(self):
        given = np.linspace(0.1, 7.7, 64)
        for dtype in (tf.float16, tf.bfloat16):
            mine = tf.cast(given, dtype)
            right = tf.cast(tf.cast(mine, tf.float64) / hvd.size(), dtype)
            for result in in_both_modes(lambda: hvd.allreduce(
                    tf.IndexedSlices(mine, tf.range(64)))):
                self.assertEqual(result.values.numpy().tolist(),
                                 np.tile(right.numpy(), hvd.size()).tolist())
