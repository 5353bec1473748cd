# SPDX-License-Identifier: Apache-2.0
"""Lets libhvd read the Python stack of the main thread, also when it hangs.

Python's faulthandler writes it when the main thread gets a signal. It needs neither the GIL nor memory, so it
works while the program hangs in a library. The text goes to a memory file whose name has the number
of the signal. libhvd sends the signal, and finds the file by its name. The stacks of other threads,
which run meanwhile, may change while they are read, so they are left out."""

import faulthandler
import os
import signal

_SIGNAL = signal.SIGRTMAX - 3
_FILE = f'hvd-stacks-{_SIGNAL}'  # collectives/stack/python_stack.c knows the name

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
    faulthandler.register(_SIGNAL, file=_file, all_threads=False)
