# SPDX-License-Identifier: Apache-2.0
"""Elastic training: ``hvd.elastic``."""

import contextlib
import re

import tensorflow as tf

from horovod._keras.elastic import ModelState
from horovod.common import requests
from horovod.common.basics import basics
from horovod.common.elastic import ObjectState, ValuesState, begin_anew, run_fn
from horovod.common.exceptions import HorovodInternalError
from horovod.common.variables import must_be_as_saved, must_match
from horovod.tensorflow.functions import broadcast_object, broadcast_variables

# What a failed node says (contrib/python/native/tensorflow/call.c). The name of a node alone
# may also be in the text of others' failures.
_JOB_IS_OVER = re.compile('Horovod[A-Z][a-z]+ failed: |HorovodInternalError|JobShutDownError')


@contextlib.contextmanager
def failures():
    """A context that raises HorovodInternalError instead of TensorFlow's UnknownError when a
    collective fails because the job is over. Disagreements between ranks stay TensorFlow's
    errors."""
    try:
        yield
    except tf.errors.UnknownError as failure:
        if not _JOB_IS_OVER.search(failure.message):
            raise
        raise HorovodInternalError(failure.message) from failure


def run(func):
    """Decorates the training function ``func(state, ...)``. It starts with rank 0's state, and
    starts again from the last commit when a rank dies, or with more ranks when new ones have
    joined."""
    return run_fn(func, begin_anew, failures)


def _shapes(variables):
    return [str(each.shape) for each in variables]


class Values:
    """Saves and restores the values of variables, and takes them from rank 0."""

    def __init__(self, variables):
        """variables: the function that lists them."""
        self._variables = variables
        self.save()

    def save(self):
        """Saves the present values."""
        found = self._variables()
        self._shapes = _shapes(found)
        self._saved = [tf.identity(each) for each in found]

    def restore(self):
        """Restores the saved values. ValueError if the variables have changed."""
        found = self._variables()
        must_be_as_saved(_shapes(found), self._shapes)
        for variable, value in zip(found, self._saved):
            variable.assign(value)

    def sync(self):
        """Takes rank 0's values and saves them. Collective."""
        found = self._variables()
        must_match(_shapes(found), 0)
        self._broadcast(found)
        requests.must_have_landed()
        self.save()

    def _broadcast(self, found):
        broadcast_variables(found, 0)


class GraphValues(Values):
    """The same in a graph of TensorFlow 1. Its nodes are made once, so that all ranks have the
    same names for them."""

    def __init__(self, variables, session):
        """session: the function that returns it."""
        found = variables()
        self._session = session
        self._given = [tf.compat.v1.placeholder(each.dtype.base_dtype, each.shape)
                       for each in found]
        self._assignments = [tf.compat.v1.assign(*pair) for pair in zip(found, self._given)]
        self._broadcasts = broadcast_variables(found, 0)
        super().__init__(lambda: found)

    def save(self):
        self._saved = self._session().run(self._variables())

    def restore(self):
        self._session().run(self._assignments, dict(zip(self._given, self._saved)))

    def _broadcast(self, found):
        self._session().run(self._broadcasts)


class TensorFlowState(ValuesState):
    """Variables of TensorFlow, and values that can be pickled, such as the epoch, as attributes.

    variables: those of the model and of its optimizer, which must have made them already. None:
        the global variables of a graph of TensorFlow 1. ValueError when there are none.
    session: that of such a graph, which need not be the default one here; None: the default
        session. Not needed otherwise.
    """

    def __init__(self, variables=None, session=None, **kwargs):
        self.session = session or tf.compat.v1.get_default_session()
        with contextlib.nullcontext() if session is None else session.graph.as_default():
            self.variables = tf.compat.v1.global_variables() if variables is None else variables
            if len(list(self.variables)) == 0:
                raise ValueError('there are no variables to keep: make the model and its optimizer '
                                 'first, and pass their variables, or the session of a graph of '
                                 'TensorFlow 1')
            self._values = (Values(lambda: list(self.variables)) if tf.executing_eagerly() else
                            GraphValues(lambda: list(self.variables), lambda: self.session))
        super().__init__(broadcast_object, basics.rank, **kwargs)


class TensorFlowKerasState(ModelState):
    """A model of tf.keras, its optimizer, and values that can be pickled, such as the epoch, as
    attributes. For the arguments see help(horovod._keras.elastic.ModelState); ``backend``, Keras's
    own, is accepted for compatibility and has no effect."""

    def __init__(self, model, optimizer=None, backend=None, **kwargs):
        super().__init__(model, optimizer, **kwargs)
        self.backend = backend

    @property
    def keras(self):
        return tf.keras
