# SPDX-License-Identifier: Apache-2.0
"""Keeps torch.compile out of this package: what calls C, it cannot trace, and at places it fails
where it could leave a function alone."""

import sys


def keep_out():
    """Lets compiled functions call this package's as they are. Does nothing until torch has loaded
    its compiler, which takes seconds: so this is called wherever that has likely happened."""
    compiler = sys.modules.get('torch._dynamo')
    rules = getattr(compiler, 'trace_rules', None) or getattr(compiler, 'skipfiles', None)
    if rules is not None and not hasattr(rules, 'hvd_is_kept_out'):
        rules.add('horovod')
        rules.hvd_is_kept_out = True
