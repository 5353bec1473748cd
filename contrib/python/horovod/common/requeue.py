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
from horovod.common.exceptions import HorovodInternalError
from horovod.common.library import Error, check_ended, lib

# The exit status of a job that is not requeued because it would be stopped at the same point again.
# NVIDIA's ft_launcher ends a chain of jobs without progress with this status, too.
EXIT_NO_PROGRESS = 93
EXIT_REFUSED = 1

_SCONTROL_SECONDS = 60

_is_wanted = False
_is_checked = False  # whether Slurm would requeue this job
_has_continued = False  # should_stop() has answered no in this process
_is_due = False  # the last answer of should_stop() was yes, because of SIGUSR1


def want():
    """Makes leave() requeue the job. Any time before the first should_stop()."""
    global _is_wanted
    _is_wanted = True


def forget():
    """Makes leave() do nothing until should_stop() is asked again: the training continues, because
    an elastic job begins anew."""
    global _is_due
    _is_due = False


def _job():
    """Returns the name by which scontrol knows the job, or None outside of Slurm. The number of a
    task of a job array may also mean the whole array."""
    array, task = (os.environ.get(f'SLURM_ARRAY_{name}_ID') for name in ('JOB', 'TASK'))
    return f'{array}_{task}' if array and task else os.environ.get('SLURM_JOB_ID')


def _is_chosen():
    """Whether the script, the user, or --hvd=requeue of this very step has asked for it. A step that
    a rank starts inherits the variable of its step."""
    step = f'{os.environ.get("SLURM_JOB_ID")}.{os.environ.get("SLURM_STEP_ID")}'
    return _is_wanted or os.environ.get('HVD_REQUEUE') in ('1', step)


def _say(text):
    print(f'hvd: {text}', file=sys.stderr, flush=True)


class _EndedBySlurm(OSError):
    """A signal has ended scontrol."""


def _scontrol(*words):
    """Runs scontrol and returns what it prints. Raises OSError if it fails."""
    try:
        run = subprocess.run(['scontrol', *words], stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             universal_newlines=True, timeout=_SCONTROL_SECONDS)
    except subprocess.TimeoutExpired:
        raise OSError(f'scontrol {words[0]} has not ended within {_SCONTROL_SECONDS} s') from None
    if run.returncode < 0:
        raise _EndedBySlurm(f'scontrol {words[0]}: ended by signal {-run.returncode}')
    if run.returncode != 0:
        raise OSError(f'scontrol {words[0]}: {(run.stderr or run.stdout).strip()}')
    return run.stdout


def _facts(job):
    return _scontrol('show', 'job', '-o', job).split()


def _check(job):
    """Raises ValueError if the job has a batch script, but Slurm would refuse to requeue it."""
    try:
        facts = _facts(job)
    except OSError as failure:
        raise ValueError(f'job {job} could not be requeued later: {failure}') from None
    if 'BatchFlag=0' in facts:
        _say(f'job {job} will not be requeued, because it has no batch script')
    elif 'Requeue=0' in facts:
        raise ValueError(f'job {job} could not be requeued later, because it was submitted with '
                         '--no-requeue or Slurm has JobRequeue=0: use sbatch --requeue')


def should_stop():
    """Returns the answer of hvd_should_stop as a bool, and keeps what leave() needs to know. If
    requeueing is wanted, the first call raises ValueError on rank 0 if Slurm would refuse it."""
    global _is_checked, _has_continued, _is_due
    is_chosen = _is_chosen()
    if is_chosen and not _is_checked and membership.numbers().rank == 0 and _job():
        _check(_job())
    _is_checked = True
    error = Error()
    answer = lib.hvd_should_stop(error)
    check_ended(min(answer, 0), error)
    _is_due = is_chosen and answer == signal.SIGUSR1
    _has_continued = _has_continued or answer == 0
    return answer != 0


def _requeue(answer):
    """Requeues the job. ``answer``: the signals that the ranks have received by now."""
    job = _job()
    if job is None:
        _say('nothing is requeued, because this is no job of Slurm')
    elif not _has_continued:
        _say(f'job {job} is not requeued: SIGUSR1 arrived before should_stop() was first called, as '
             'it would again. Raise the time limit, let sbatch --signal send it later, or call '
             'should_stop() more often')
        lib.hvd_set_exit_status(EXIT_NO_PROGRESS)
    elif answer == signal.SIGTERM and 'JobState=CANCELLED' in _facts(job):
        _say(f'job {job} is not requeued, because it was cancelled')
    else:
        try:
            _scontrol('requeue', job)
        except _EndedBySlurm:
            pass  # Slurm kills the step, and scontrol with it, as soon as it has taken the request
        _say(f'job {job} is requeued')


def leave():
    """Requeues the job if it is due; otherwise does nothing. Collective; called when the ranks leave
    the job. If the job cannot be requeued, rank 0 says why and the process will end with
    EXIT_REFUSED. If a rank has failed after should_stop(), its checkpoint may be missing, and the
    job is not requeued."""
    global _is_due
    if not _is_due:
        return
    _is_due = False
    error = Error()
    try:
        answer = lib.hvd_should_stop(error)  # returns when all ranks have called it
        check_ended(min(answer, 0), error)
        if membership.numbers().rank == 0:
            _requeue(answer)
    except (OSError, HorovodInternalError) as failure:
        _say(f'the job is not requeued: {failure}')
        lib.hvd_set_exit_status(EXIT_REFUSED)
