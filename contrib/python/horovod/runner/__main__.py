# SPDX-License-Identifier: Apache-2.0
"""python -m horovod.runner: hvdrun, with its command line."""

from horovod.runner.launch import run_commandline

run_commandline()
