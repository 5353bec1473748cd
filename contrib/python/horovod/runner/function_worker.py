# SPDX-License-Identifier: Apache-2.0
"""A rank of ``horovod.run``: fetches the function, calls it, and sends the result back."""

import os
import sys
import traceback

from horovod.runner.common.util.env import get_env_rank_and_size
from horovod.runner.function_server import ADDRESS, KEY, pickle
from horovod.runner.keyed_server import connect


def call(work):
    """Calls the function; returns the answer to the server: a kind and its data."""
    path, function = work
    sys.path.extend(entry for entry in path if entry not in sys.path)
    try:
        return 'result', pickle.dumps(pickle.loads(function)())
    except Exception:
        return 'failure', traceback.format_exc()


def main():
    """Runs the rank. Ends it with the function's traceback if the function raised an exception."""
    host, port = os.environ.pop(ADDRESS).rsplit(':', 1)
    key = bytes.fromhex(os.environ.pop(KEY))
    with connect((host, int(port)), key) as server:
        server.send(get_env_rank_and_size())
        kind, answer = call(server.recv())
        server.send((kind, answer))
    if kind == 'failure':
        sys.exit(answer)


if __name__ == '__main__':
    main()
