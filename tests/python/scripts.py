# SPDX-License-Identifier: Apache-2.0
"""Runs scripts one after the other in this process, which thus imports the framework once:
scripts.py JSON, a list of commands, each a list of a script's path and its arguments. All ranks leave
the job at the end of each. Rank 0 writes a line, MARK, before what each script prints."""

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
