# SPDX-License-Identifier: Apache-2.0
"""Checks the arguments of reductions, for all front ends."""

import warnings

from horovod.common.arguments import check_average, check_op
from horovod.common.basics import Average, Sum
from horovod.common.exceptions import HorovodInternalError


def choose_op(op, average):
    """Returns the reduction op from the arguments op and average, which is deprecated. ValueError
    if both are given."""
    if average is None:
        return Average if op is None else check_op(op)
    if op is not None:
        raise ValueError('The op parameter supersedes average. Please provide only one of them.')
    check_average(average)
    warnings.warn('the argument average is deprecated; use op=hvd.Average or op=hvd.Sum',
                  DeprecationWarning, stacklevel=3)
    return Average if average else Sum


def choose_scatter_op(op):
    """Returns the op of a reducescatter. HorovodInternalError, as in Horovod, unless it is Average
    or Sum."""
    op = check_op(op)
    if op not in (Average, Sum):
        raise HorovodInternalError('Reducescatter currently only supports AVERAGE and SUM.')
    return op


def check_num_rank_power_of_2(num_rank):
    """Whether Adasum can pair this many ranks."""
    return num_rank > 0 and num_rank & (num_rank - 1) == 0


def check_adasum_ranks(size):
    """Raises NotImplementedError if Adasum cannot pair this many ranks."""
    if not check_num_rank_power_of_2(size):
        raise NotImplementedError(
            'Running Adasum with non-power of 2 ranks is not supported yet.')


def scattered_shape(shape, process_set):
    """Returns the shape of this rank's part of a reducescatter: dim0 // size rows, and one more on
    the first dim0 % size ranks. Returns () for a scalar, which libhvd rejects on all ranks."""
    if not shape:
        return ()
    size, rank = process_set.size(), process_set.rank()
    return (shape[0] // size + (rank < shape[0] % size), *shape[1:])


def split_evenly(members, count):
    """Divides the members into ``count`` tuples of neighbours whose lengths differ by at most one.
    Returns fewer tuples if there are fewer members."""
    if count == 0:
        return []
    count = min(count, len(members))
    bounds = [index * len(members) // count for index in range(count + 1)]
    return [tuple(members[begin:end]) for begin, end in zip(bounds, bounds[1:])]
