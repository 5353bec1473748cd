# SPDX-License-Identifier: Apache-2.0
"""Warns if the ranks start the training from different parameters, because the script does not
broadcast those of one rank."""

import os
import sys
import warnings
from ctypes import addressof, c_int64

from horovod.common import requests
from horovod.common.basics import Sum
from horovod.common.library import DEVICE_CPU, DTYPES
from horovod.common.process_sets import set_id

_PRIME = 1048573  # the squares of checksums below 2^20 can be summed over 2^23 ranks


_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


def _warn(text):
    """Warns, and names the line of the script that has called this package."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        level, frame = level + 1, frame.f_back
    warnings.warn(text, stacklevel=level)


def _differ(count, total, squares):
    """Whether the numbers differ that have this count, this sum and this sum of squares: the sums
    of equal numbers n satisfy count * squares = total^2, and no others do (Cauchy-Schwarz)."""
    return count * squares != total * total


def warn_if_different(checksum, name, process_set, remedy):
    """Compares the checksums, integers, of the ranks; the first rank warns if they differ.
    Collective: takes one allreduce of 24 bytes. It is a sum because in that a rank that has joined
    can take part; its parameters are not known then, so nothing is compared. ``remedy``: what to
    call."""
    number = checksum % _PRIME
    sums = (c_int64 * 3)(1, number, number * number)
    if os.environ.get('HVD_CHECK_PARAMETERS') == '0':
        sums = (c_int64 * 3)()
    tensor = (name, addressof(sums), addressof(sums), (3,), DTYPES['int64'], DEVICE_CPU)
    requests.synchronize(requests.add(requests.allreduce(
        [tensor], Sum, (1.0, 1.0), set_id(process_set, 'the check of parameters'), sums,
        lambda request: None)))
    if sums[0] == process_set.size() and _differ(*sums) and process_set.rank() == 0:
        _warn(
            'the ranks start from different parameters, although they share gradients: call '
            f'{remedy} before the first step, and after a checkpoint has been loaded. '
            'HVD_CHECK_PARAMETERS=0 turns this check off.')
