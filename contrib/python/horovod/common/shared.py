# SPDX-License-Identifier: Apache-2.0
"""Memory that the other ranks of the node can map: an allreduce in place of what lies in it adds up
where it is, if all ranks gave such memory."""

import ctypes
import os
import weakref

from horovod.common.library import Error, check_submitted, lib


def allocate(count):
    """Zeroed bytes on a page as an object with the buffer protocol; freed when the last one that
    holds it, such as a tensor, has gone. HorovodInternalError where there is no memory."""
    address, error = ctypes.c_void_p(), Error()
    check_submitted(lib.hvd_shared_alloc(count, ctypes.byref(address), ctypes.byref(error)), error)
    memory = (ctypes.c_char * count).from_address(address.value)
    # At exit a tensor may still be in use; the memory ends with the process anyhow.
    weakref.finalize(memory, _free, address.value, os.getpid()).atexit = False
    return memory


def _free(address, owner):
    """In a forked child, also one of before hvd.init, nothing: it would empty the parent's."""
    if os.getpid() == owner:
        lib.hvd_shared_free(address)
