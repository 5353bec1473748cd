# SPDX-License-Identifier: Apache-2.0
"""Checks of the arguments that all front ends have: a TypeError or ValueError names the argument,
its value, and what was expected."""

import operator

OPS = ('Average', 'Sum', 'Adasum', 'Min', 'Max', 'Product')  # by number
_LONGEST = 80  # characters of a value in an error


def wrong_type(name, value, expected):
    """The TypeError to raise."""
    found = repr(value)
    if len(found) > _LONGEST:
        found = f'{found[:_LONGEST]}...'
    return TypeError(f'{name} is {found}, of type {type(value).__name__}: expected {expected}')


def _whole(value):
    """The number, or None where it is none."""
    try:
        return None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        return None


def check_op(op):
    """The number of a reduction; TypeError or ValueError."""
    number = _whole(op)
    expected = f'one of {", ".join(f"hvd.{name}" for name in OPS)}'
    if number is None:
        raise wrong_type('op', op, expected)
    if not 0 <= number < len(OPS):
        raise ValueError(f'op is {op!r}: expected {expected}')
    return number


def check_average(average):
    """TypeError unless it is true or false: a string such as 'sum' would mean an average."""
    if not hasattr(type(average), '__bool__'):
        raise wrong_type('average', average, 'True or False')


def check_iterable(name, value, expected):
    """TypeError unless there are items to take from it; those of a string are not meant."""
    try:
        iter(value)
    except TypeError:
        raise wrong_type(name, value, expected) from None
    if isinstance(value, (str, bytes)):
        raise wrong_type(name, value, expected)


def check_rank(name, rank):
    """The number of a rank; TypeError."""
    number = _whole(rank)
    if number is None:
        raise wrong_type(name, rank, 'the number of a rank')
    return number


def check_number(name, value):
    """The number as a float; TypeError, also for text such as '0.5'."""
    try:
        if hasattr(type(value), '__float__'):
            return float(value)
    except (TypeError, ValueError):  # such as an array of several numbers
        pass
    raise wrong_type(name, value, 'a number')


def check_scale(scale):
    """The pair (prescale_factor, postscale_factor); TypeError."""
    return (check_number('prescale_factor', scale[0]), check_number('postscale_factor', scale[1]))


def check_priority(priority):
    """The whole number; TypeError."""
    number = _whole(priority)
    if number is None:
        raise wrong_type('priority', priority, 'a whole number')
    return number


def check_count(name, value, least):
    """The whole number; TypeError, or ValueError where it is less than ``least``."""
    number = _whole(value)
    if number is None:
        raise wrong_type(name, value, f'a whole number, {least} or more')
    if number < least:
        expected = '> 0' if least == 1 else f'{least} or more'  # > 0 as Horovod has it
        raise ValueError(f'{name} must be {expected}, not {number}')
    return number


def check_name(name):
    """TypeError unless it is a tensor's name, or None."""
    if not (name is None or isinstance(name, str)):
        raise wrong_type('name', name, 'a string, or None')


def check_set(process_set):
    """TypeError unless it is a process set, registered or not."""
    if not hasattr(process_set, 'process_set_id'):
        raise wrong_type('process_set', process_set,
                         'an hvd.ProcessSet, such as hvd.global_process_set')


def check_compression(compression):
    """TypeError unless it can compress and decompress."""
    if not (hasattr(compression, 'compress') and hasattr(compression, 'decompress')):
        raise wrong_type('compression', compression,
                         'a member of hvd.Compression, such as hvd.Compression.fp16')


def check_gradient_settings(op, compression, predivide_factor, process_set):
    """Those that all distributed optimizers have; TypeError or ValueError."""
    check_op(op)
    check_compression(compression)
    check_number('gradient_predivide_factor', predivide_factor)
    check_set(process_set)
