#!python
# SPDX-License-Identifier: Apache-2.0
"""hvdrun and the other commands of a wheel: replaces itself by the program of its name in the
package. The package is not imported, which is faster, and works if another distribution has
overwritten it."""

import os
import sys

NAME = os.path.basename(sys.argv[0])
PROGRAM = os.path.join('horovod', '_hvd', 'bin', NAME.replace('horovodrun', 'hvdrun'))
for folder in sys.path:
    path = os.path.join(folder, PROGRAM)
    if os.access(path, os.X_OK):
        os.execv(path, [NAME, *sys.argv[1:]])
sys.exit(f'{NAME}: no folder of sys.path has {PROGRAM}: {sys.executable} -m pip install '
         '--force-reinstall --no-deps hvd')
