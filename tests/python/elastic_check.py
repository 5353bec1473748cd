# SPDX-License-Identifier: Apache-2.0
"""Elastic jobs of torch under hvdrun: a rank dies, or comes back, and the training still ends with
the right result. Prints TAP; starts its ranks itself. Arguments: the stories (scenarios) to run,
the keys of STORIES; default all."""

import collections
import functools
import os
import re
import shutil
import sys
import tempfile

import launch
from elastic_example import train_example
from report import run_check

JOB = os.path.join(launch.HERE, 'elastic_job.py')
ENDED = re.compile(r'^slot (\d) ended: sizes (\[.*\]), steps (\d+), same (\w+)$',
                   re.MULTILINE)


def tell(report, story, options=(), **variables):
    """Runs a story of elastic_job.py on three slots, with environment variables. Returns the exit
    status, the output, and how often each sample of each epoch was processed."""
    directory = tempfile.mkdtemp(prefix='hvd-test-')
    try:
        status, output = launch.run_ranks(3, [JOB, story, directory],
                                          options=['--min-np', '1', *options], **variables)
        counts = collections.Counter(
            line for name in os.listdir(directory) if name.startswith('log.')
            for line in open(os.path.join(directory, name)).read().splitlines())
    finally:
        shutil.rmtree(directory)
    return status, output, counts


def each_once(counts, epochs):
    return all(counts[f'{epoch} {sample}'] == 1 for epoch in epochs for sample in range(240))


def check_death(story, what, report):
    status, output, counts = tell(report, story)
    ended = [match.groups() for match in ENDED.finditer(output)]
    report.line(status == 0 and len(ended) == 2, f'{what}: the other ranks finish the training',
                output)
    report.line(all(each[1] == '[3, 2]' and each[3] == 'True' for each in ended),
                f'{what}: they restart once, and end with the same model', output)
    report.line(each_once(counts, range(3)), f'{what}: each sample is processed once in each epoch',
                str(counts.most_common(3)) + output)


def check_return(report):
    status, output, _ = tell(report, 'again', ['--blacklist-cooldown-range', '1', '2'])
    ended = [match.groups() for match in ENDED.finditer(output)]
    report.line(status == 0 and len(ended) == 3, 'a rank that comes back takes part', output)
    report.line(sorted(each[1] for each in ended) == ['[3, 2, 3]', '[3, 2, 3]', '[3]'],
                'the other ranks restart once without it and once with it', output)
    report.line({each[3] for each in ended} == {'True'} and len({each[2] for each in ended}) == 1,
                'it has the same model and step count as the other ranks', output)


def check_late(report):
    status, output, _ = tell(report, 'late', HVD_START_TIMEOUT='1')
    report.line(status == 0 and len(ENDED.findall(output)) == 2,
                'ranks finish the training without a rank that is late', output)
    reason = 'hvd: another rank has reported that the training is done'
    report.line(reason in output and 'Traceback' not in output,
                'the late rank exits and prints the reason', output)


def check_disagreement(report):
    status, output, _ = tell(report, 'disagree')
    report.line(status != 0 and 'Mismatched ALLREDUCE tensor shapes' in output
                and 'generation 2' not in output,
                'ranks that disagree end with the error: it would be the same again', output)


def check_example(report):
    undisturbed, ranks, output = train_example('train.py', 4, {})
    report.line(undisturbed is not None and ranks == 4 and undisturbed > 0.95,
                'the example recognises 95 % of the digits on four ranks', output)
    accuracy, ranks, output = train_example('train.py', 4, {2: 1, 5: 0})
    report.line(accuracy is not None and ranks == 2, 'the example finishes after two ranks are killed',
                output)
    report.line(None not in (accuracy, undisturbed) and abs(accuracy - undisturbed) <= 0.012,
                'its accuracy is then the same', f'{accuracy}, undisturbed {undisturbed}')


STORIES = {
    'exit': functools.partial(check_death, 'exit', 'a rank that dies'),
    'exception': functools.partial(check_death, 'exception', 'a rank with an exception'),
    'backward': functools.partial(check_death, 'backward', 'a rank that dies in backward'),
    'again': check_return,
    'late': check_late,
    'disagree': check_disagreement,
    'example': check_example,
}


def check(report):
    for story in sys.argv[1:] or STORIES:
        STORIES[story](report)


if __name__ == '__main__':
    run_check(check, 3, with_hvdrun=True)
