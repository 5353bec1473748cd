# SPDX-License-Identifier: Apache-2.0
"""Keeps torch.compile out of this package. It cannot trace calls into C, and in places it fails
instead of leaving a function alone."""

import inspect
import sys


def keep_out():
    """Makes compiled functions call this package's functions uncompiled. Does nothing until torch
    has loaded its compiler, which takes seconds; so this is called where that has probably
    happened."""
    compiler = sys.modules.get('torch._dynamo')
    rules = getattr(compiler, 'trace_rules', None) or getattr(compiler, 'skipfiles', None)
    if rules is not None and not hasattr(rules, 'hvd_is_kept_out'):
        rules.add('horovod')
        rules.hvd_is_kept_out = True


def _skip(code):
    """Frames of this code, and where torch knows how (2.7) those below them, are not compiled."""
    try:
        from torch._C._dynamo import eval_frame
    except ImportError:
        return  # before torch 2.0
    if hasattr(eval_frame, '_FrameExecStrategy'):
        skip = eval_frame._FrameAction.SKIP
        eval_frame.set_code_exec_strategy(code, eval_frame._FrameExecStrategy(skip, skip))
    elif hasattr(eval_frame, 'skip_code'):
        eval_frame.skip_code(code)


def uncompiled(methods):
    """Class decorator: compiled functions call the methods as they are. Unlike keep_out, it works
    before torch has loaded its compiler."""
    for each in vars(methods).values():
        if inspect.isfunction(each):
            each._torchdynamo_disable = True  # not part of another function's graph
            each._torchdynamo_disable_msg = 'it calls into libhvd'
            _skip(each.__code__)
    return methods
