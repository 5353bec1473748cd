# SPDX-License-Identifier: Apache-2.0
"""Keeps torch.compile out of this package. It cannot trace calls into C, and in places it fails
instead of leaving a function alone."""

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
