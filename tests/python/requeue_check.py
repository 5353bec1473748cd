# SPDX-License-Identifier: Apache-2.0
"""After SIGUSR1 has stopped the training, rank 0 requeues the Slurm job once all ranks have come to
the end of the script. A script named scontrol stands for Slurm's. Needs no framework. Prints TAP;
starts its ranks itself."""

import os
import tempfile

import launch
from report import run_check

# Rank 1 gets a signal after WHEN steps. Rank 0 comes to its end first; rank 1 runs LAST half a second
# later.
SCRIPT = '''
import os, signal, sys, time
os.environ.update({variables})
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
show) echo 'JobId=12 Requeue={requeue} Restarts=0 BatchFlag={batch} JobState={state}' ;;
requeue) {answer} ;;
esac
'''
JOB = {'SLURM_JOB_ID': '12', 'SLURM_STEP_ID': '3'}
SAVE = 'open("saved", "w").close()'
FAIL_AND_LEAVE = '''try:
        raise ValueError("disk full")
    finally:
        hvd.shutdown()'''


class Run:
    """Two ranks that are stopped. ``calls``: those of scontrol, which refuses to requeue the job by
    default if rank 1 has not saved yet."""

    def __init__(self, variables=None, requeue=True, when=3, name='SIGUSR1', last=SAVE, facts=1, batch=1,
                 state='RUNNING', answer='test -e saved', **environment):
        with tempfile.TemporaryDirectory(prefix='hvd-test-') as folder:
            self.folder = folder
            self._write('scontrol', SCONTROL.format(folder=folder, requeue=facts, batch=batch, state=state,
                                                    answer=answer))
            os.chmod(os.path.join(folder, 'scontrol'), 0o755)
            self._write('calls', '')
            script = SCRIPT.format(variables=JOB if variables is None else variables, folder=folder,
                                   requeue=requeue, when=when, signal=name, last=last)
            self.status, self.output = launch.run_ranks(
                2, ['-c', script], PATH=folder + ':' + os.environ['PATH'], **environment)
            with open(os.path.join(folder, 'calls')) as file:
                self.calls = file.read().splitlines()

    def _write(self, name, text):
        with open(os.path.join(self.folder, name), 'w') as file:
            file.write(text)

    def has(self, status, calls, text=''):
        return self.status == status and self.calls == calls and text in self.output

    def __str__(self):
        return f'status {self.status}, calls of scontrol: {self.calls}\n{self.output}'


SHOW, REQUEUE = 'show job -o 12', 'requeue 12'


def check_requeued(report):
    run = Run()
    report.line(run.has(0, [SHOW, REQUEUE], 'hvd: job 12 is requeued'),
                'after SIGUSR1 rank 0 requeues the job when all ranks have saved', run)
    run = Run(last=f'{SAVE}\n    hvd.shutdown()')
    report.line(run.has(0, [SHOW, REQUEUE]), 'a script may call shutdown()', run)
    run = Run({**JOB, 'SLURM_ARRAY_JOB_ID': '12', 'SLURM_ARRAY_TASK_ID': '7'})
    report.line(run.has(0, [f'{SHOW}_7', f'{REQUEUE}_7']), 'of a job array, only this task is requeued', run)
    for value, calls, promise in (('1', [SHOW, REQUEUE], 'HVD_REQUEUE=1 does the same'),
                                  ('12.3', [SHOW, REQUEUE], 'HVD_REQUEUE may name the step'),
                                  ('12.2', [], 'HVD_REQUEUE of an outer step has no effect')):
        run = Run({**JOB, 'HVD_REQUEUE': value}, requeue=False)
        report.line(run.has(0, calls), promise, run)
    run = Run(requeue=False)
    report.line(run.has(0, []), 'nothing is requeued unless somebody has asked for it', run)


def check_not_requeued(report):
    run = Run(name='SIGTERM')
    report.line(run.has(0, [SHOW]), 'after SIGTERM Slurm requeues the job itself, or it was cancelled', run)
    for last, promise in (('raise ValueError("disk full")', 'an exception'),
                          (FAIL_AND_LEAVE, 'an exception, and leaves the job by shutdown()')):
        run = Run(last=last)
        report.line(run.has(1, [SHOW], 'ValueError: disk full'),
                    f'the job is not requeued if a rank ends by {promise}', run)
    cancel = f'{SAVE}\n    os.kill(os.getpid(), signal.SIGTERM)'
    run = Run(last=cancel, state='CANCELLED')
    report.line(run.has(0, [SHOW, SHOW], 'hvd: job 12 is not requeued, because it was cancelled'),
                'a job that was cancelled while it saved is not requeued', run)
    run = Run(last=cancel, state='TIMEOUT')
    report.line(run.has(0, [SHOW, SHOW, REQUEUE]), 'a job that reached its limit while it saved is requeued', run)
    run = Run(when=0)
    report.line(run.has(93, [SHOW], 'hvd: job 12 is not requeued: SIGUSR1 arrived before should_stop() was'),
                'a run that is stopped at once may save, and ends with 93', run)


def check_refused(report):
    run = Run(answer='kill -TERM $$')
    report.line(run.has(0, [SHOW, REQUEUE], 'hvd: job 12 is requeued'),
                'the job is requeued even if Slurm ends scontrol before it can tell', run)
    run = Run(answer='echo "slurm_requeue error: Job is busy" >&2; exit 1')
    report.line(run.has(1, [SHOW, REQUEUE], 'hvd: the job is not requeued: scontrol requeue: slurm_requeue '
                        'error: Job is busy'), 'a refusal of Slurm is an error', run)
    run = Run(facts=0)
    report.line(run.has(1, [SHOW], 'job 12 could not be requeued later, because it was submitted with '
                        '--no-requeue'), 'a job that Slurm would refuse fails at the first should_stop()', run)
    run = Run(batch=0, answer='echo "Only batch jobs are accepted" >&2; exit 1')
    report.line(run.has(1, [SHOW, REQUEUE], 'hvd: job 12 will not be requeued, because it has no batch script'),
                'a job without a batch script says at the beginning that it will not be requeued', run)


def check(report):
    check_requeued(report)
    check_not_requeued(report)
    check_refused(report)


if __name__ == '__main__':
    run_check(check, 2, 'json')
