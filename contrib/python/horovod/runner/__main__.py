# SPDX-License-Identifier: Apache-2.0
"""Makes ``python -m horovod.runner`` the same as hvdrun."""

from horovod.runner.launch import run_commandline

run_commandline()
