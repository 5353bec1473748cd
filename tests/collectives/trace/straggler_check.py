# SPDX-License-Identifier: Apache-2.0
"""Checks the straggler report of a job; exits with an error if it is wrong.

straggler_check.py late REPORT RANK complete|incomplete    the rank was late in each step
straggler_check.py replay REPORT OUTPUT                    the report has all batches; the job has printed the number
                                                           of tensors to the file OUTPUT
straggler_check.py page PAGE RANK                          the page shows that the rank was late in each step
"""

import base64
import json
import re
import sys


def late(report, rank, complete):
    """The late rank submits 3 ms after the last of the others in each step. If one of the others is preempted and
    notes its submission even later, that step does not count for the late rank. A job that is killed has written the
    report at the end of the first window."""
    late_rank, others = report['ranks'][rank], [r for r in report['ranks'] if r['rank'] != rank]
    compared = report['batches_compared']
    assert report['complete'] == complete, 'complete'
    assert report['size'] == len(report['ranks']) and compared >= (256 if complete else 64), 'batches compared'
    assert late_rank['times_last'] > compared / 2, 'times last'
    assert late_rank['late_mean_us'] > 1000, 'mean'
    assert late_rank['late_us'] > 2 * max(r['late_us'] for r in others), 'late'
    assert f"Rank {rank} on {late_rank['host']} was the last in " in report['verdict'], 'verdict'
    assert "in section 'disk'." in report['verdict'], 'section'
    assert report['sections_us']['disk'][rank] > 1000 * compared, 'time in the section'
    assert min(r['waited_us'] for r in others) > 1000 * compared, 'waited'
    assert report['collectives_per_rank']['allreduce']['batches'] >= compared, 'batches'


def replay(report, tensors):
    found = report['collectives_per_rank']['allreduce']['tensors']
    named = report['batches_even'] + sum(r['times_last'] for r in report['ranks'])
    print(f'{found} tensors, {named} of {report["batches_compared"]} batches have a last rank')
    assert report['complete'], 'complete'
    assert found == tensors, f'{tensors} tensors'
    assert named == report['batches_compared'], 'in step'


def page(text, rank):
    data = json.loads(re.search(r'<script id="data" type="application/json">(.*?)</script>', text, re.S)[1])
    report, time = data['report'], data['time']
    count, cells = time['count'], base64.b64decode(time['late'])
    assert not re.search(r'@[A-Z0-9]+@|<(link|img)\b|<script[^>]*\bsrc=|@import', text), 'is one file'
    assert report['late_rank'] == rank and report['verdict'].startswith(f'Rank {rank} on '), 'verdict'
    assert time['unit'] == 'batch' and count >= 256 and time['width'] == 1, 'columns'
    assert len(cells) == len(base64.b64decode(time['waited'])) == count * report['size'], 'cells'
    rows = [cells[i * count:(i + 1) * count] for i in range(report['size'])]
    assert sum(row > 80 for row in rows[rank]) > count / 2, 'late by more than a millisecond'
    assert time['ended_us'] == sorted(time['ended_us']) and min(time['moving_us']) >= 0, 'times'
    assert data['scores'][rank][0] < 5000, 'score'
    assert [each['name'] for each in data['buckets']] == ['step'], 'buckets'


def read(path):
    with open(path) as file:
        return file.read()


if __name__ == '__main__':
    if sys.argv[1] == 'page':
        page(read(sys.argv[2]), int(sys.argv[3]))
        sys.exit(0)
    print(read(sys.argv[2]))
    if sys.argv[1] == 'late':
        late(json.loads(read(sys.argv[2])), int(sys.argv[3]), sys.argv[4] == 'complete')
    else:
        replay(json.loads(read(sys.argv[2])), int(read(sys.argv[3])))
