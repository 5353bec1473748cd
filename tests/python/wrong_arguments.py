# SPDX-License-Identifier: Apache-2.0
"""Calls every function of a front end with one wrong argument at a time. Each call must raise a
TypeError or ValueError that names the argument, its value, and what was expected."""

import inspect
import re

WRONG = {
    'op': ['sum', 1.0, True, [0], 9, -1],
    'average': ['sum', [1]],
    'name': [3, b'name', ['name']],
    'process_set': ['global', 0, None, [0]],
    'root_rank': ['0', 1.5, None, True],
    'prescale_factor': ['half', '0.5', None, [1.0]],
    'postscale_factor': ['half', None],
    'gradient_predivide_factor': ['2', None, [2.0]],
    'compression': ['fp16', 16, ['fp16']],
    'backward_passes_per_step': ['2', 1.5, None, True],
    'num_groups': ['2', 1.5],
    'groups': ['two', 1.5, -1],
    'optimizer': ['sgd', None, 3],
    'tensor': ['a', None],
    'tensors': [3, None, ['a'], 'a'],
    'splits': ['ab', 1.5, ['a']],
    'variables': [3, 'ab', [3]],
    'params': [3, None, 'ab'],
    'priority': ['high', 1.5, None],
    'file_path': [3, None],
    'device_dense': [3],
    'device_sparse': [3],
}


def functions_of(module):
    """Returns {name: function} for the public functions of the module, and DistributedOptimizer."""
    return {name: value for name, value in vars(module).items()
            if not name.startswith('_') and callable(value)
            and (inspect.isroutine(value) or 'Distributed' in name)
            and value.__module__.startswith('horovod')}


def calls(module, good):
    """Yields (name, argument, wrong value, keyword arguments). ``good``: {argument: a function that
    returns a valid value}, for arguments that a call needs."""
    for name, function in functions_of(module).items():
        parameters = inspect.signature(function).parameters
        needed = [each.name for each in parameters.values() if each.default is each.empty
                  and each.kind is each.POSITIONAL_OR_KEYWORD]
        for argument in parameters:
            for wrong in WRONG.get(argument, ()):
                yield name, argument, wrong, {**{each: good[each]() for each in needed
                                                 if each != argument}, argument: wrong}


def is_told(argument, wrong, text):
    """Whether the text of an error names the argument, its value, and what was expected."""
    found = [wrong] + (list(wrong) if isinstance(wrong, (list, str)) else [])
    return (re.search(rf'\b{argument}\b', text) is not None
            and re.search('expected|should be|must be', text) is not None
            and any(repr(each) in text for each in found))


def check(case, module, good, excused=()):
    """Makes all calls for ``case``, a unittest.TestCase. ``excused``: pairs (function, argument)
    that are not checked."""
    count = 0
    for name, argument, wrong, arguments in calls(module, good):
        if (name, argument) in excused:
            continue
        count += 1
        with case.subTest(f'{name}({argument}={wrong!r})'):
            with case.assertRaises((TypeError, ValueError)) as caught:
                getattr(module, name)(**arguments)
            text = str(caught.exception)
            case.assertTrue(is_told(argument, wrong, text), text)
    case.assertGreater(count, 50)
