# SPDX-License-Identifier: Apache-2.0
"""Requeues the Slurm job after SIGUSR1, the signal of its time limit, has stopped the training.

Such a run ends in three steps: should_stop() returns True on all ranks after the same step; the
script writes its checkpoint; the ranks leave the job. Slurm kills a job when it is requeued, so rank
0 calls scontrol only after all ranks have begun to leave.
"""

import os
import signal
import subprocess
import sys

from horovod.common import membership
from horovod.common.library import Error, check_ended, lib

# The exit code of all ranks if the job would be stopped at the same point again. NVIDIA's ft_launcher
# ends a chain of jobs without progress with this code, too.
EXIT_NO_PROGRESS = 93

_SCONTROL_SECONDS = 60

_is_wanted = False
_steps = 0  # how often should_stop() has answered no
_is_due = False  # should_stop() has answered yes, because of SIGUSR1


def want():
    """Makes should_stop() and leave() requeue the job. Any time before the first should_stop()."""
    global _is_wanted
    _is_wanted = True


def _job():
    return os.environ.get('SLURM_JOB_ID')


def _is_first():
    return membership.numbers().rank == 0


def _scontrol(*words):
    """Runs scontrol and returns what it prints. Raises OSError if it fails."""
    try:
        run = subprocess.run(['scontrol', *words], stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             universal_newlines=True, timeout=_SCONTROL_SECONDS)
    except subprocess.TimeoutExpired:
        raise OSError(f'scontrol {words[0]} has not ended within {_SCONTROL_SECONDS} s') from None
    if run.returncode != 0:
        raise OSError(f'scontrol {words[0]}: {(run.stderr or run.stdout).strip()}')
    return run.stdout


def _must_be_possible():
    """Raises ValueError on rank 0 of a batch job that Slurm would refuse to requeue."""
    job = _job()
    if job is None or not _is_first():
        return
    try:
        facts = _scontrol('show', 'job', '-o', job).split()
    except OSError as failure:
        raise ValueError(f'job {job} could not be requeued later: {failure}') from None
    if 'BatchFlag=1' in facts and 'Requeue=0' in facts:
        raise ValueError(f'job {job} could not be requeued later, because it was submitted with '
                         '--no-requeue or Slurm has JobRequeue=0: use sbatch --requeue')


def should_stop():
    """Returns the answer of hvd_should_stop as a bool, and keeps what leave() needs to know.

    If requeueing is wanted, the first call raises ValueError on rank 0 if Slurm would refuse it, and
    SystemExit(EXIT_NO_PROGRESS) on all ranks if SIGUSR1 has arrived before the first step.
    """
    global _is_wanted, _steps, _is_due
    _is_wanted = _is_wanted or os.environ.get('HVD_REQUEUE') == '1'
    if _is_wanted and _steps == 0:
        _must_be_possible()
    error = Error()
    answer = lib.hvd_should_stop(error)
    check_ended(min(answer, 0), error)
    _is_due = _is_wanted and answer == signal.SIGUSR1
    _steps += answer == 0
    if _is_due and _steps == 0:
        if _is_first():
            print(f'hvd: job {_job()} is not requeued: SIGUSR1 arrived before the first step, as it '
                  'would again. Raise the time limit, or let sbatch --signal send it later',
                  file=sys.stderr)
        _is_due = False
        raise SystemExit(EXIT_NO_PROGRESS)
    return answer != 0


def leave():
    """Requeues the job if it is due. Collective; called when the ranks leave the job.

    Raises OSError on rank 0 if Slurm has refused, and HorovodInternalError if a rank has failed
    after should_stop(): then its checkpoint may be missing, and the job is not requeued.
    """
    global _is_due
    if not _is_due:
        return
    _is_due = False
    error = Error()
    check_ended(min(lib.hvd_should_stop(error), 0), error)  # returns when all ranks have called it
    if not _is_first():
        return
    job = _job()
    if job is None:
        print('hvd: nothing is requeued, because this is no job of Slurm', file=sys.stderr)
        return
    print(f'hvd: job {job} is requeued', file=sys.stderr, flush=True)
    _scontrol('requeue', job)
