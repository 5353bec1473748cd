# SPDX-License-Identifier: Apache-2.0
"""Memory that all ranks of a node can map. If all ranks pass such memory, an in-place allreduce
adds up directly in it."""

import ctypes
import os
import weakref

from horovod.common.library import Error, check_submitted, lib


def allocate(count):
    """Page-aligned, zeroed memory as an object with the buffer protocol. It is freed with the last
    object that refers to it, such as a tensor. HorovodInternalError if there is no memory."""
    address, error = ctypes.c_void_p(), Error()
    check_submitted(lib.hvd_shared_alloc(count, ctypes.byref(address), ctypes.byref(error)), error)
    memory = (ctypes.c_char * count).from_address(address.value)
    # At exit a tensor may still be in use; the memory ends with the process anyhow.
    weakref.finalize(memory, _free, address.value, os.getpid()).atexit = False
    return memory


def _free(address, owner):
    """Does nothing in a forked child, even if it was forked before hvd.init: it would empty the
    parent's memory."""
    if os.getpid() == owner:
        lib.hvd_shared_free(address)
