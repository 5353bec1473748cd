# SPDX-License-Identifier: Apache-2.0
"""Horovod's Python interface on top of hvd's C library; pure Python, nothing to compile.

``__version__`` is the release of Horovod whose interface this is: scripts compare it to learn
what they may call. hvd's own version is ``horovod.common.library.VERSION``.
"""

from horovod.runner import run

__version__ = '0.28.1'
