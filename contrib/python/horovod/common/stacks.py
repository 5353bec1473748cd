# SPDX-License-Identifier: Apache-2.0
"""Lets ``hvd-info --stacks`` ask this process for its Python stacks, also when it hangs.

Python's faulthandler writes them when a signal comes. It needs neither the GIL nor memory, so it
works while the program hangs in a library. The text goes to a memory file whose name has the number
of the signal, and which hvd-info reads by /proc/PID/fd."""

import faulthandler
import os
import signal

_SIGNAL = signal.SIGRTMAX - 3
_FILE = f'hvd-stacks-{_SIGNAL}'  # contrib/info/live/stack.c knows the name

_file = None


def offer():
    """Registers the handler once, unless the script uses the signal itself."""
    global _file
    if _file is not None or signal.getsignal(_SIGNAL) is not signal.SIG_DFL:
        return
    try:
        _file = os.memfd_create(_FILE)
    except OSError:
        return
    faulthandler.register(_SIGNAL, file=_file, all_threads=True)
