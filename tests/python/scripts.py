# SPDX-License-Identifier: Apache-2.0
"""Runs scripts one after the other in this process, so that it imports the framework only once:
scripts.py JSON. The argument is a list of commands, each a list of a script and its arguments. All
ranks leave the job after each script. Rank 0 prints the line MARK before the output of a script."""

import json
import os
import runpy
import sys

from horovod.runner.common.util.env import get_env_rank_and_size
from launch import MARK
from ranks import leave


def main():
    own_path = list(sys.path)
    for command in json.loads(sys.argv[1]):
        if get_env_rank_and_size()[0] == 0:
            print(MARK, flush=True)
        sys.argv = command
        sys.path[:] = [os.path.dirname(command[0]), *own_path[1:]]
        runpy.run_path(command[0], run_name='__main__')
        leave()


if __name__ == '__main__':
    main()
