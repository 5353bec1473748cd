# SPDX-License-Identifier: Apache-2.0
"""Horovod's Python interface on top of hvd's C library; pure Python, nothing to compile.

``__version__`` is the release of Horovod whose interface this package has, because scripts
compare it to decide which functions they may call. hvd's own version is
``horovod.common.library.VERSION``.
"""

import sys

# Older versions of Python read this file up to the error below, so its syntax must be valid
# in Python 2.
if sys.version_info < (3, 8):
    raise ImportError('hvd needs Python 3.8 or newer, this is Python %d.%d (%s): install it for '
                      'a newer one, or start the script with one'
                      % (sys.version_info[0], sys.version_info[1], sys.executable))

from horovod.common import absent, owners
from horovod.runner import run

absent.announce()
owners.warn()

__version__ = '0.28.1'
