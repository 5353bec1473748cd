# SPDX-License-Identifier: Apache-2.0
"""If a rank ends with an exception, all other ranks and the launcher name the rank and the
exception. Needs no framework. Prints TAP; starts its ranks itself."""

import launch
from report import run_check

SCRIPT = '''
import sys
import horovod.common.basics as hvd
hvd.init()
hvd.should_stop()
if hvd.rank() == 1:
    {end}
hvd.should_stop()
'''
HOROVOD = 'Horovod has been shut down. This was caused by an exception on one of the ranks'


def check(report):
    status, output = launch.run_ranks(3, ['-c', SCRIPT.format(end='raise ValueError("bo\\nom")')])
    told = [line for line in output.splitlines()
            if HOROVOD in line and ' rank 1 on ' in line and line.endswith(': ValueError: bo om')]
    report.line(len(told) == 2, 'both other ranks name the rank and its exception', output)
    report.line(status == 1 and 'hvdrun: rank 1 ' in output
                and 'status 1: ValueError: bo om' in output, 'hvdrun names the rank and its exception, too', output)
    status, output = launch.run_ranks(3, ['-c', SCRIPT.format(end='sys.exit(3)')])
    told = [line for line in output.splitlines()
            if HOROVOD in line and line.endswith(' has left the job') and ' rank 1 on ' in line]
    report.line(len(told) == 2, 'both other ranks name a rank that ends without an exception', output)
    report.line(status == 3, 'the exit status is that of the rank that failed first', output)


if __name__ == '__main__':
    run_check(check, 3, 'json')
