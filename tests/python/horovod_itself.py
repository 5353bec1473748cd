# SPDX-License-Identifier: Apache-2.0
"""Runs Horovod 0.28.1 itself, as a single rank, to compare with. contrib/bench/horovod_env.sh
installs it, or HVD_TEST_HOROVOD names a python that has it."""

import json
import os
import subprocess
import unittest

import horovod.torch as ours

_CACHE = os.environ.get('XDG_CACHE_HOME') or os.path.expanduser('~/.cache')
PYTHON = (os.environ.get('HVD_TEST_HOROVOD')
          or os.path.join(_CACHE, 'hvd-bench', 'horovod-0.28.1', 'bin', 'python'))


def ask(script):
    """Runs a script in which ``hvd`` is Horovod's horovod.torch; returns the value, encoded as
    JSON, that it assigns to ``answer``. In a job all ranks call this and get the answer of rank 0's
    script. SkipTest if Horovod is not installed."""
    if not ours.is_initialized():
        failure, answer = _run(script)
    else:
        failure, answer = ours.broadcast_object(_run(script) if ours.rank() == 0 else None)
    if failure is not None:
        raise failure
    return answer


def _run(script):
    """Runs a script. Returns (exception to raise, answer), one of which is None."""
    if not os.access(PYTHON, os.X_OK):
        return unittest.SkipTest(
            'there is no Horovod: make one with contrib/bench/horovod_env.sh'), None
    keep = {name: value for name, value in os.environ.items()
            if name in ('HOME', 'PATH', 'TMPDIR', 'OMP_NUM_THREADS')}
    result = subprocess.run(
        [PYTHON, '-c', f'import json, torch\nimport horovod.torch as hvd\nhvd.init()\n{script}\n'
                       'print(json.dumps(answer))'],
        env=keep, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        return AssertionError(f'Horovod failed:\n{result.stdout}{result.stderr}'), None
    return None, json.loads(result.stdout.splitlines()[-1])
