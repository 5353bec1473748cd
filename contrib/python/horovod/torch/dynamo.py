# SPDX-License-Identifier: Apache-2.0
"""Excludes this package from torch.compile, which cannot trace calls into C. In some places it
fails instead of skipping a function with such a call."""

import inspect
import sys


def keep_out():
    """Makes compiled functions call the functions of this package uncompiled. Does nothing if torch
    has not loaded its compiler yet, because loading it takes seconds. So it is called at points
    where the script has probably used the compiler."""
    compiler = sys.modules.get('torch._dynamo')
    rules = getattr(compiler, 'trace_rules', None) or getattr(compiler, 'skipfiles', None)
    if rules is not None and not hasattr(rules, 'hvd_is_kept_out'):
        rules.add('horovod')
        rules.hvd_is_kept_out = True


def _skip(code):
    """Excludes functions with this code from compilation, and since torch 2.7 also the functions
    that they call."""
    try:
        from torch._C._dynamo import eval_frame
    except ImportError:
        return  # torch before 2.0 has no compiler
    if hasattr(eval_frame, '_FrameExecStrategy'):
        skip = eval_frame._FrameAction.SKIP
        eval_frame.set_code_exec_strategy(code, eval_frame._FrameExecStrategy(skip, skip))
    elif hasattr(eval_frame, 'skip_code'):
        eval_frame.skip_code(code)


def uncompiled(methods):
    """Class decorator: compiled functions call the methods of the class uncompiled. Unlike
    keep_out, it works before torch has loaded its compiler."""
    for each in vars(methods).values():
        if inspect.isfunction(each):
            each._torchdynamo_disable = True  # not traced as part of a caller
            each._torchdynamo_disable_msg = 'it calls into libhvd'
            _skip(each.__code__)
    return methods
