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

# Matches the error of a node that failed because the job is over
# (contrib/python/native/tensorflow/call.c). To look for the name of a node would not do: other
# errors may contain it, too.
_JOB_IS_OVER = re.compile('Horovod[A-Z][a-z]+ failed: |HorovodInternalError|JobShutDownError')


@contextlib.contextmanager
def failures():
    """A context manager that turns TensorFlow's UnknownError into HorovodInternalError if a
    collective failed because the job is over. If it failed because the ranks disagree, TensorFlow's
    error is raised unchanged."""
    try:
        yield
    except tf.errors.UnknownError as failure:
        if not _JOB_IS_OVER.search(failure.message):
            raise
        raise HorovodInternalError(failure.message) from failure


def run(func):
    """Decorator for the training function ``func(state, ...)``, whose first argument is an
    hvd.elastic.TensorFlowState or TensorFlowKerasState.

    The function starts with the state of rank 0. If a rank dies, it is called again with the state
    of the last commit. If ranks join or leave, it is called again after the commit that notices
    it. Needs an elastic job: ``srun --hvd=elastic`` or ``hvdrun --min-np N``; in other jobs the
    death of a rank ends the job.
    """
    return run_fn(func, begin_anew, failures)


def _shapes(variables):
    return [str(each.shape) for each in variables]


class Values:
    """Saves and restores the values of variables, and copies them from rank 0."""

    def __init__(self, variables):
        """variables: a function that returns the list of variables."""
        self._variables = variables
        self.save()

    def save(self):
        """Saves the current values."""
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
        """Takes over rank 0's values and saves them. Collective."""
        found = self._variables()
        must_match(_shapes(found), 0)
        self._broadcast(found)
        requests.must_have_landed()
        self.save()

    def _broadcast(self, found):
        broadcast_variables(found, 0)


class GraphValues(Values):
    """Like Values, for a graph of TensorFlow 1. Adds its nodes to the graph only once, so that they
    have the same names on all ranks."""

    def __init__(self, variables, session):
        """session: a function that returns the session."""
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
    """The state of an elastic training: variables of TensorFlow, and the keyword arguments as
    attributes. Their values must be picklable, such as the epoch.

    variables: the variables of the model and of its optimizer, both of which must exist already.
        None: the global variables of a graph of TensorFlow 1. ValueError if there are none.
    session: for a graph of TensorFlow 1, its session; None: the default session.
    """

    def __init__(self, variables=None, session=None, **kwargs):
        self.session = session or tf.compat.v1.get_default_session()
        with contextlib.nullcontext() if session is None else session.graph.as_default():
            self.variables = tf.compat.v1.global_variables() if variables is None else variables
            if len(list(self.variables)) == 0:
                raise ValueError('there are no variables to save: make the model and its optimizer '
                                 'first, and pass their variables, or the session of a graph of '
                                 'TensorFlow 1')
            self._values = (Values(lambda: list(self.variables)) if tf.executing_eagerly() else
                            GraphValues(lambda: list(self.variables), lambda: self.session))
        super().__init__(broadcast_object, basics.rank, **kwargs)


class TensorFlowKerasState(ModelState):
    """The state of an elastic training: a model of tf.keras, its optimizer, and the keyword
    arguments, as attributes. For the arguments see help(horovod._keras.elastic.ModelState);
    ``backend`` is accepted for compatibility and has no effect."""

    def __init__(self, model, optimizer=None, backend=None, **kwargs):
        super().__init__(model, optimizer, **kwargs)
        self.backend = backend

    @property
    def keras(self):
        return tf.keras
