# SPDX-License-Identifier: Apache-2.0
"""Prints the exception that ends the script, in one write: the tracebacks of ranks that fail
together do not mix on a shared standard error.

If a collective has failed, the cause is in another rank or in the script, so the lines of this
package are left out of the traceback.
"""

import os
import sys
import traceback

from horovod.common.exceptions import HorovodInternalError

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


def install():
    """Prints uncaught exceptions this way, unless the script or its environment has a hook of its
    own or the interpreter is interactive."""
    if sys.excepthook is sys.__excepthook__ and not hasattr(sys, 'ps1'):
        sys.excepthook = _print


def _print(kind, value, trace):
    report = traceback.TracebackException(kind, value, trace)
    if issubclass(kind, HorovodInternalError):
        _leave_out_package(report)
    sys.stderr.write(''.join(report.format()))
    sys.stderr.flush()


def _leave_out_package(report):
    """Removes the lines of this package, as long as a line of the script is left."""
    stack = [frame for frame in report.stack if not frame.filename.startswith(_PACKAGE)]
    if stack:
        report.stack = traceback.StackSummary.from_list(stack)
