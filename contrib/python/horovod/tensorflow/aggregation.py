# SPDX-License-Identifier: Apache-2.0
"""Adds up the gradients of several backward passes on this rank, before the ranks reduce them."""

import tensorflow as tf


class Aggregation:
    """Sums of gradients, in variables that the first call makes. Works in eager mode, in
    tf.function and in graphs of TensorFlow 1."""

    def __init__(self, passes, averages, share):
        """passes: the number of backward passes per step. averages: divide the sums by that number.
        share: a function that reduces a list of gradients over the ranks."""
        if passes < 1:
            raise ValueError(f'backward_passes_per_step must be > 0, not {passes}')
        self.passes = passes
        self._averages = averages
        self._share = share
        self.counter = None  # a variable: the number of backward passes of this step so far
        self._sums = None
        self._is_last = None

    def __call__(self, gradients):
        """Adds the gradients to the sums. Returns the reduced sums in the last backward pass of a
        step and zeros in the other passes; None stays None."""
        if self.passes == 1:
            return self._share(gradients)
        present = [each for each in gradients if each is not None]
        present = [tf.convert_to_tensor(each) for each in present]
        self._make_variables(present)
        added = [total.assign_add(each) for total, each in zip(self._sums, present)]
        made = (self.counter.read_value() + 1) % self.passes
        with tf.control_dependencies([*added, self.counter.assign(made)]):
            self._is_last = tf.equal(made, 0)
            shared = iter(tf.cond(self._is_last, self._take,
                                  lambda: [tf.zeros_like(each) for each in present]))
        return [None if each is None else next(shared) for each in gradients]

    def forget(self):
        """Drops the sums so far, so that the next backward pass is the first of a step. Returns the
        operations that a graph of TensorFlow 1 must run for this."""
        return [each.assign(tf.zeros_like(each)) for each in (self.counter, *(self._sums or ()))
                if each is not None]

    def apply_on_last(self, apply, otherwise):
        """Calls ``apply`` in the last backward pass of a step, and ``otherwise`` in the other
        passes, after the gradients of this pass have been added. Both return an operation or
        None."""
        def run(function):
            with tf.control_dependencies([tf.group(function() or tf.no_op())]):
                return tf.constant(0)

        return tf.cond(self._is_last, lambda: run(apply), lambda: run(otherwise))

    def _take(self):
        divisor = self.passes if self._averages else 1
        shared = self._share([total.read_value() / tf.cast(divisor, total.dtype)
                              for total in self._sums])
        with tf.control_dependencies(shared):
            cleared = [total.assign(tf.zeros_like(total)) for total in self._sums]
        with tf.control_dependencies(cleared):
            return [tf.identity(each) for each in shared]

    def _make_variables(self, gradients):
        if self.counter is None:
            with tf.init_scope():
                self.counter = tf.Variable(0, trainable=False, dtype=tf.int64)
                self._sums = [tf.Variable(tf.zeros(each.shape, each.dtype), trainable=False)
                              for each in gradients]
