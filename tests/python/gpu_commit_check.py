# SPDX-License-Identifier: Apache-2.0
"""What a commit saves when a rank dies in a collective on GPUs. Prints TAP; starts its ranks itself."""

import os
import shutil
import sys
import tempfile

import launch
from report import Report

JOB = os.path.join(launch.HERE, 'gpu_commit_job.py')


def main():
    reason = launch.missing(2)
    if reason:
        print(f'1..0 # SKIP {reason}')
        return 0
    directory = tempfile.mkdtemp(prefix='hvd-test-')
    try:
        _, output = launch.run_ranks(2, [JOB, os.path.join(directory, 'launched')])
    finally:
        shutil.rmtree(directory)
    report = Report()
    report.line('launched' in output, 'a stream waits for a collective in which a rank dies', output)
    report.line('not committed: rank 1 ' in output and 'saved [2.0, 4.0, 6.0]' in output,
                'a commit fails by its cause, and keeps what was saved before', output)
    report.line('left [nan, nan, nan]' in output, 'what the collective has left is no number', output)
    return report.done()


if __name__ == '__main__':
    sys.exit(main())
