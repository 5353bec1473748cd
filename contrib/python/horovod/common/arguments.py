# SPDX-License-Identifier: Apache-2.0
"""Checks of arguments that all front ends have in common. The TypeError or ValueError names the
argument, its value, and what was expected."""

import operator

OPS = ('Average', 'Sum', 'Adasum', 'Min', 'Max', 'Product')  # the index is the op's number
_LONGEST = 80  # an error shows this many characters of a value


def wrong_type(name, value, expected):
    """Returns the TypeError to raise."""
    found = repr(value)
    if len(found) > _LONGEST:
        found = f'{found[:_LONGEST]}...'
    return TypeError(f'{name} is {found}, of type {type(value).__name__}: expected {expected}')


def _whole(value):
    """Returns the value as an int, or None if it is not a whole number."""
    try:
        return None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        return None


def check_op(op):
    """Returns the number of a reduction op. Raises TypeError or ValueError if it is not one."""
    number = _whole(op)
    expected = f'one of {", ".join(f"hvd.{name}" for name in OPS)}'
    if number is None:
        raise wrong_type('op', op, expected)
    if not 0 <= number < len(OPS):
        raise ValueError(f'op is {op!r}: expected {expected}')
    return number


def check_average(average):
    """Raises TypeError for values that have no method __bool__, such as strings: the string 'sum'
    would otherwise select the average."""
    if not hasattr(type(average), '__bool__'):
        raise wrong_type('average', average, 'True or False')


def check_iterable(name, value, expected):
    """Raises TypeError unless the value is an iterable other than a string."""
    try:
        iter(value)
    except TypeError:
        raise wrong_type(name, value, expected) from None
    if isinstance(value, (str, bytes)):
        raise wrong_type(name, value, expected)


def check_rank(name, rank):
    """Returns the rank as an int. Raises TypeError if it is not a whole number."""
    number = _whole(rank)
    if number is None:
        raise wrong_type(name, rank, 'the number of a rank')
    return number


def check_number(name, value):
    """Returns the value as a float. Raises TypeError if it is not a number; text such as '0.5' is
    not one."""
    try:
        if hasattr(type(value), '__float__'):
            return float(value)
    except (TypeError, ValueError):  # for example, an array of several numbers
        pass
    raise wrong_type(name, value, 'a number')


def check_scale(scale):
    """Returns (prescale_factor, postscale_factor) as floats. Raises TypeError if one is not a
    number."""
    return (check_number('prescale_factor', scale[0]), check_number('postscale_factor', scale[1]))


def check_priority(priority):
    """Returns the priority as an int. Raises TypeError if it is not a whole number."""
    number = _whole(priority)
    if number is None:
        raise wrong_type('priority', priority, 'a whole number')
    return number


def check_count(name, value, least):
    """Returns the value as an int. Raises TypeError if it is not a whole number, and ValueError if
    it is less than ``least``."""
    number = _whole(value)
    if number is None:
        raise wrong_type(name, value, f'a whole number, {least} or more')
    if number < least:
        expected = '> 0' if least == 1 else f'{least} or more'  # "> 0" is Horovod's text
        raise ValueError(f'{name} must be {expected}, not {number}')
    return number


def check_name(name):
    """Raises TypeError unless the name is a string or None."""
    if not (name is None or isinstance(name, str)):
        raise wrong_type('name', name, 'a string, or None')


def check_set(process_set):
    """Raises TypeError unless the argument is a process set, registered or not."""
    if not hasattr(process_set, 'process_set_id'):
        raise wrong_type('process_set', process_set,
                         'an hvd.ProcessSet, such as hvd.global_process_set')


def check_compression(compression):
    """Raises TypeError unless the argument has the methods compress and decompress."""
    if not (hasattr(compression, 'compress') and hasattr(compression, 'decompress')):
        raise wrong_type('compression', compression,
                         'a member of hvd.Compression, such as hvd.Compression.fp16')


def check_gradient_settings(op, compression, predivide_factor, process_set):
    """Checks the arguments that all distributed optimizers share. Raises TypeError or
    ValueError."""
    check_op(op)
    check_compression(compression)
    check_number('gradient_predivide_factor', predivide_factor)
    check_set(process_set)
