# SPDX-License-Identifier: Apache-2.0
"""After SIGUSR1 has stopped the training, rank 0 requeues the Slurm job once all ranks have come to
the end of the script. A script named scontrol stands for Slurm's. Needs no framework. Prints TAP;
starts its ranks itself."""

import os
import tempfile

import launch
from report import run_check

# Rank 1 gets a signal after three steps. Rank 0 comes to its end first; `last` runs on rank 1 half a
# second later.
SCRIPT = '''
import os, signal, sys, time
os.environ['SLURM_JOB_ID'] = '12'
os.chdir('{folder}')
import horovod.common.basics as hvd
hvd.init()
hvd.stop_on_signals(requeue={requeue})
steps = 0
if hvd.rank() == 1 and {when} == 0:
    os.kill(os.getpid(), signal.{signal})
while not hvd.should_stop():
    steps += 1
    if hvd.rank() == 1 and steps == {when}:
        os.kill(os.getpid(), signal.{signal})
if hvd.rank() == 1:
    time.sleep(0.5)
    {last}
'''
SCONTROL = '''#!/bin/sh
echo "$*" >>{folder}/calls
case $1 in
show) echo 'JobId=12 Requeue={requeue} Restarts=0 BatchFlag=1' ;;
requeue) {answer} ;;
esac
'''


def run(facts=1, answer='test -e saved', requeue=True, when=3, name='SIGUSR1',
        last='open("saved", "w").close()', **environment):
    """Runs two ranks. Returns hvdrun's exit status, their output, and the calls of scontrol, which
    refuses to requeue the job by default if rank 1 has not saved yet."""
    with tempfile.TemporaryDirectory(prefix='hvd-test-') as folder:
        path = os.path.join(folder, 'scontrol')
        with open(path, 'w') as file:
            file.write(SCONTROL.format(folder=folder, requeue=facts, answer=answer))
        os.chmod(path, 0o755)
        calls = os.path.join(folder, 'calls')
        open(calls, 'w').close()
        script = SCRIPT.format(folder=folder, requeue=requeue, when=when, signal=name, last=last)
        environment['PATH'] = folder + ':' + os.environ['PATH']
        status, output = launch.run_ranks(2, ['-c', script], **environment)
        with open(calls) as file:
            return status, output, file.read().splitlines()


def told(status, output, calls):
    return f'status {status}, calls of scontrol: {calls}\n{output}'


def check(report):
    shows = ['show job -o 12']
    requeues = shows + ['requeue 12']

    status, output, calls = run()
    report.line(status == 0 and calls == requeues, 'after SIGUSR1 rank 0 requeues the job when all ranks have saved',
                told(status, output, calls))
    report.line('hvd: job 12 is requeued' in output, 'it says so', output)
    status, output, calls = run(HVD_REQUEUE='1', requeue=False)
    report.line(status == 0 and calls == requeues, 'HVD_REQUEUE=1 is the same', told(status, output, calls))
    status, output, calls = run(requeue=False)
    report.line(status == 0 and not calls, 'without either, nothing is requeued', told(status, output, calls))
    status, output, calls = run(name='SIGTERM')
    report.line(status == 0 and calls == shows,
                'after SIGTERM Slurm requeues the job itself, or it was cancelled', told(status, output, calls))
    status, output, calls = run(last='raise ValueError("disk full")')
    report.line(status == 1 and calls == shows and 'ValueError: disk full' in output,
                'a rank that fails while it saves keeps the job from being requeued',
                told(status, output, calls))
    status, output, calls = run(when=0)
    report.line(status == 93 and calls == shows
                and 'hvd: job 12 is not requeued: SIGUSR1 arrived before the first step' in output,
                'a run that is stopped before its first step ends with 93', told(status, output, calls))
    status, output, calls = run(answer='echo "slurm_requeue error: Job is busy" >&2; exit 1')
    report.line(status == 1 and calls == requeues and 'hvd: the job is not requeued: scontrol '
                'requeue: slurm_requeue error: Job is busy' in output,
                'a refusal of Slurm is an error', told(status, output, calls))
    status, output, calls = run(facts=0)
    report.line(status == 1 and calls == shows and 'job 12 could not be requeued later, because it '
                'was submitted with --no-requeue' in output,
                'a job that Slurm would refuse to requeue fails at the first step',
                told(status, output, calls))


if __name__ == '__main__':
    run_check(check, 2, 'json')
