# SPDX-License-Identifier: Apache-2.0
"""A commit saves nothing when a rank has died in a collective on GPUs. Prints TAP; starts its ranks
itself."""

import os

import launch
from report import run_check

JOB = os.path.join(launch.HERE, 'gpu_commit_job.py')


def check(report):
    directory = report.directory
    _, output = launch.run_ranks(2, [JOB, os.path.join(directory, 'launched')])
    report.line('launched' in output, 'a stream waits for a collective in which a rank has died',
                output)
    report.line('not committed: rank 1 ' in output and 'saved [2.0, 4.0, 6.0]' in output,
                'the commit fails with the cause and keeps the values saved before', output)
    report.line('left [nan, nan, nan]' in output, 'the result of the collective is NaN', output)


if __name__ == '__main__':
    run_check(check, 2)
