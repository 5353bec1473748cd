# SPDX-License-Identifier: Apache-2.0
"""Calls the check of horovod.common.alike in the steps of eager programs and of tf.function.

Scripts may broadcast the variables after the first batch, because only then all of them exist, and a
batch of two models that train each other may be several steps. So the variables are compared some
steps later: if nobody broadcasts them, they still differ, because all ranks add the same to them.
"""

import itertools
import zlib
from weakref import ref

import tensorflow as tf

from horovod.common.alike import StartCheck
from horovod.common.elastic import is_elastic

_REMEDY = ('hvd.broadcast_variables(model.variables, root_rank=0), or fit() with '
           'BroadcastGlobalVariablesCallback(0) of hvd.callbacks,')
_STEP = 10
_checks = {}
_numbers = itertools.count()
_is_off = False


def turn_off(is_off):
    """Compares nothing in programs that begin while this is off: Keras may take many steps in one
    call before a callback can broadcast."""
    global _is_off
    _is_off = is_off


class _Check:
    """The check of one set of variables. The ranks match checks by their order."""

    def __init__(self, variables, process_set):
        self._variables = [ref(each) for each in variables]
        self._label = f'tensorflow.{next(_numbers):06d}'
        self._check = StartCheck(process_set, _REMEDY)
        self._eager_steps = 0
        self._steps = None  # a variable: the steps of tf.function

    def is_alive(self):
        return self._variables[0]() is not None

    def step(self):
        """Returns the operation that counts a step and calls the check in step _STEP, which starts
        the comparison, and in the next one, which ends it. In eager mode does this itself and
        returns None."""
        if tf.executing_eagerly():
            self._eager_steps += 1
            if self._eager_steps in (_STEP, _STEP + 1):
                self._compare()
            return None
        if self._steps is None:
            with tf.init_scope():
                self._steps = tf.Variable(0, trainable=False, dtype=tf.int64)
        count = self._steps.assign_add(1)
        return tf.cond(tf.logical_or(tf.equal(count, _STEP), tf.equal(count, _STEP + 1)),
                       lambda: _after(tf.py_function(self._compare, [], [])),
                       lambda: tf.constant(0))

    def _compare(self):
        self._check.step(_checksum, self._named)

    def _named(self):
        found = [each() for each in self._variables]
        return {f'{self._label}.{index}': each for index, each in enumerate(found)
                if each is not None}


def _after(operation):
    with tf.control_dependencies([operation]):
        return tf.constant(0)


def _checksum(variables):
    """Returns an integer made of one row of each variable: initial values differ everywhere."""
    total = 0
    for variable in variables:
        row = variable.read_value()
        while row.shape.rank and row.shape.rank > 1 and row.shape[0]:
            row = row[-1]
        total += zlib.crc32(row.numpy().tobytes())
    return total


def _of_tensorflow(variables):
    """Returns the variables of TensorFlow among these, and those in variables of Keras 3."""
    found = [getattr(each, 'value', None) if isinstance(getattr(type(each), 'value', None), property)
             else each for each in variables]
    return [each for each in found if isinstance(each, tf.Variable) and each.dtype.is_floating]


def step(variables, process_set):
    """Call it in each step, before the variables change. Returns an operation that must run before
    that, or None."""
    if (_is_off or is_elastic() or tf.distribute.has_strategy()
            or not tf.compat.v1.executing_eagerly_outside_functions()):
        return None
    variables = _of_tensorflow(variables)
    if not variables:
        return None
    key = (id(variables[0]), id(variables[-1]), len(variables), process_set.process_set_id)
    check = _checks.get(key)
    if check is None or not check.is_alive():
        check = _checks[key] = _Check(variables, process_set)
    return check.step()
