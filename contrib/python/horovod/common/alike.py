# SPDX-License-Identifier: Apache-2.0
"""Warns if the ranks start the training from different parameters, because the script does not
broadcast those of one rank."""

import os
import re
import sys
import warnings
from ctypes import addressof, c_int64

from horovod.common import requests
from horovod.common.basics import Sum
from horovod.common.elastic import is_elastic
from horovod.common.exceptions import HorovodInternalError
from horovod.common.library import DEVICE_CPU, DTYPES
from horovod.common.process_sets import set_id

_PRIME = 1048573  # the squares of checksums below 2^20 can be summed over 2^23 ranks
_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_INSTALLED = re.compile('/(site|dist)-packages/')
_PYTHON = os.path.dirname(os.path.abspath(os.__file__)) + os.sep


def calls():
    """Yields (file, line) of each call of this thread, from the innermost outwards."""
    frame = sys._getframe(1)
    while frame is not None:
        yield frame.f_code.co_filename, frame.f_lineno
        frame = frame.f_back


def line_of_script(stack):
    """Returns the innermost (file, line) that belongs to the script, or else to another package
    than this one: frameworks call this package from their own code. ``stack``: as of calls()."""
    nearest = given = None
    for file, line in stack:
        if file.startswith((_PACKAGE, '<frozen ')):
            continue
        if file.startswith('<'):  # code that a framework makes, or further out that of python -c
            given = file, line
        elif not _INSTALLED.search(file) and not file.startswith(_PYTHON):
            return file, line
        nearest = nearest or (file, line)
    return given or nearest or ('sys', 1)  # what warnings.warn names beyond the last frame


def report_difference(remedy, line):
    """Warns that the ranks differ. ``remedy``: what to call; ``line``: see line_of_script."""
    warnings.warn_explicit(
        'the ranks started from different parameters, although they share gradients: '
        f'call {remedy} before the first step, and after a checkpoint has been loaded. '
        'HVD_CHECK_PARAMETERS=0 turns this check off.', UserWarning, *line)


def _differ(count, total, squares):
    """Whether the numbers differ that have this count, this sum and this sum of squares: the sums
    of equal numbers n satisfy count * squares = total^2, and no others do (Cauchy-Schwarz)."""
    return count * squares != total * total


class StartCheck:
    """Compares the parameters of the ranks of a process set as they are before the first step, and
    warns on its first rank if they differ. ``remedy``: what to call.

    The first step starts an allreduce of 24 bytes, and the second waits for it: ranks may take the
    first steps of several optimizers in any order. A job compares parameters of the same names
    once, so a rank that alone makes its optimizer again does not wait for the others. The allreduce
    is a sum because in that a rank that has joined can take part; its parameters are not known
    then, so nothing is compared. In an elastic job nothing is compared either, because new ranks
    join at any step.
    """

    def __init__(self, process_set, remedy):
        self._process_set = process_set
        self._remedy = remedy
        self._handle = None
        self._sums = None
        self._is_over = is_elastic()

    def step(self, checksum, named):
        """Call it in each step, before the parameters change. ``named()`` returns {name:
        parameter}, with names that the ranks share; ``checksum(parameters)`` an integer."""
        if self._is_over:
            return
        try:
            if self._handle is not None:
                self._is_over = True
                requests.synchronize(self._handle)
                self._warn_if_different()
            elif (parameters := named()):
                name = f'start.{min(parameters)}'
                self._is_over = not requests.is_first(self._process_set.process_set_id, name)
                if not self._is_over:
                    self._start(checksum(parameters.values()), name)
        except HorovodInternalError:  # the job is over: another rank may end after its first step
            self._is_over = True

    def _start(self, checksum, name):
        number = checksum % _PRIME
        self._sums = (c_int64 * 3)(1, number, number * number)
        if os.environ.get('HVD_CHECK_PARAMETERS') == '0':
            self._sums = (c_int64 * 3)()
        place = addressof(self._sums)
        tensor = (name, place, place, (3,), DTYPES['int64'], DEVICE_CPU)
        self._handle = requests.add(requests.allreduce(
            [tensor], Sum, (1.0, 1.0), set_id(self._process_set, 'the check of parameters'),
            self._sums, lambda request: None))

    def _warn_if_different(self):
        known = self._sums[0] == self._process_set.size()
        if known and _differ(*self._sums) and self._process_set.rank() == 0:
            report_difference(self._remedy, line_of_script(calls()))
