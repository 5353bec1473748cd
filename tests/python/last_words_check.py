# SPDX-License-Identifier: Apache-2.0
"""If a rank ends with an exception, all other ranks and the launcher name the rank and the
exception. Needs no framework. Prints TAP; starts its ranks itself."""

import re

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
NOT_STARTED = '''
import sys
import horovod.common.basics as hvd
try:
    hvd.init()
except ValueError as error:
    print(error, 'by', sys.excepthook.__module__)
'''
HOROVOD = 'Horovod has been shut down. This was caused by an exception on one of the ranks'


def told_by(output, words):
    """Returns the lines in which a rank gives the reason first, then Horovod's text."""
    return [line for line in output.splitlines()
            if re.search(rf'Error: rank 1 on \S+{words}\. ', line) and line.find(HOROVOD) > 0]


def check(report):
    status, output = launch.run_ranks(3, ['-c', SCRIPT.format(end='raise ValueError("bo\\nom")')])
    report.line(len(told_by(output, ': ValueError: bo om')) == 2,
                'both other ranks name the rank and its exception', output)
    report.line(status == 1 and 'hvdrun: rank 1 ' in output
                and 'status 1: ValueError: bo om' in output, 'hvdrun names the rank and its exception, too', output)
    report.line('horovod/common/' not in output, 'the tracebacks show the lines of the script alone', output)
    report.line(len(re.findall(r'^Traceback.*\n(  .*\n)+\S*Error: .*', output, re.M)) == 3,
                'the tracebacks of the ranks do not mix', output)
    status, output = launch.run_ranks(3, ['-c', SCRIPT.format(end='sys.exit(3)')])
    report.line(len(told_by(output, ' has left the job: did its script end early, or have less data. See hvd.join..')) == 2,
                'both other ranks name a rank that ends without an exception', output)
    report.line(status == 3, 'the exit status is that of the rank that failed first', output)
    status, output = launch.run_ranks(3, ['-c', SCRIPT.format(end='sys.exit(0)')])
    report.line(status == 1 and re.search(
        r'^hvdrun: rank 1 .* exited with status 0 while rank [02] was in .*: did its script end early', output, re.M),
                'hvdrun names a rank that ends too early, and what another one was waiting for', output)
    _, output = launch.run_ranks(1, ['-c', NOT_STARTED], HVD_START_BY='chance')
    report.line("HVD_START_BY is 'chance': expected service or pmix by horovod.common.uncaught" in output,
                'the exception of an init() that fails is printed in one write, too', output)


if __name__ == '__main__':
    run_check(check, 3, 'json')
