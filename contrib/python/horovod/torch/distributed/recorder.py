# SPDX-License-Identifier: Apache-2.0
"""A flight recorder as in torch: when a call fails on any rank, each rank writes its last calls to
a file for torchfrtrace. torch's environment variables configure it."""

import os
import pickle
import sys
import tempfile
import threading
import time
import weakref
from collections import Counter, deque
from itertools import count

from horovod.torch.distributed import job

_VERSION = '2.10'  # the version of torch's file format
_MOST_FRAMES = 20
_KEY = 'hvd flight recorder'
_INTERVAL = 0.5  # seconds between checks whether another rank has failed
_PATIENCE_MS = 5000  # how long a failed rank waits for the files of the others

# The direction of a call. ALL: a collective; UP: a message to the higher of two ranks; DOWN: a
# message to the lower one.
ALL, UP, DOWN = range(3)


def _setting(*names):
    """Returns the value of the first variable that is set: torch's current name, then the names of
    older releases."""
    return next(filter(None, map(os.environ.get, names)), None)


def size_asked_for():
    """Returns how many calls to keep; 0 turns recording off."""
    return int(_setting('TORCH_FR_BUFFER_SIZE', 'TORCH_NCCL_TRACE_BUFFER_SIZE') or 0)


def _path(rank):
    """Returns the path of this rank's file: in the user's cache folder, as with torch's recorder
    for NCCL, unless a variable names another place."""
    prefix = _setting('TORCH_FR_DUMP_TEMP_FILE', 'TORCH_NCCL_DEBUG_INFO_TEMP_FILE')
    if prefix is None:
        cache = os.environ.get('XDG_CACHE_HOME') or os.path.expanduser('~/.cache')
        folder = os.path.join(cache, 'hvd')
        os.makedirs(folder, mode=0o700, exist_ok=True)
        prefix = os.path.join(folder, 'trace_rank_')
    return f'{prefix}{rank}'


def _replace(path, contents):
    """Writes a file that only the user may read. The folder may be one such as /tmp, where other
    users could place a symbolic link: the file is written under an unpredictable name, and the
    rename replaces a link instead of following it. The temporary name has neither the prefix nor
    the number of a rank's file, so that torchfrtrace ignores it."""
    descriptor, part = tempfile.mkstemp('.part', '.hvd-', os.path.dirname(path) or '.')
    try:
        with open(descriptor, 'wb') as file:
            pickle.dump(contents, file)
        os.replace(part, path)
    except BaseException:
        os.unlink(part)
        raise


def _frames():
    """Returns the stack of the script at the call, innermost frame first."""
    frame, found = sys._getframe(), []
    while frame is not None and frame.f_globals['__name__'].startswith(__package__):
        frame = frame.f_back
    while frame is not None and len(found) < _MOST_FRAMES:
        code = frame.f_code
        found.append({'name': code.co_name, 'filename': code.co_filename, 'line': frame.f_lineno})
        frame = frame.f_back
    return found


class Call:
    """One recorded call. It has a weak reference to its Work, because the Work keeps the caller's
    tensors alive. ``line``: (group, ALL, UP or DOWN); the ranks make the calls of one line in the
    same order."""

    def __init__(self, line, name, fields):
        self.line = line
        self.name = name
        self.is_kept = True
        self.has_failed = False
        self._fields = fields
        self._work = None

    def follow(self, work):
        self._work = weakref.ref(work)
        work.on_failure = self.fail

    def fail(self):
        self.has_failed = True
        recorder.write()

    def entry(self, numbers):
        """Returns the call in torch's format. ``numbers``: {line: number of its last call}; this
        method increments the number of this call's line."""
        work = None if self._work is None else self._work()
        is_over = self._work is not None and (work is None or work.is_success())
        state = 'completed' if is_over and not self.has_failed else 'scheduled'
        # Only now, because is_success() may have found out the sender of a message and changed the
        # line.
        numbers[self.line] += 1
        group, direction = self.line
        number = numbers[self.line]
        if direction != ALL:
            number = 2 * number + (direction == DOWN)
        return dict(self._fields, process_group=group, profiling_name=f'hvd:{self.name}',
                    collective_seq_id=number, p2p_seq_id=0 if direction == ALL else number,
                    op_id=number, is_p2p=direction != ALL,
                    state=state, retired=state == 'completed' or self.has_failed,
                    time_discovered_started_ns=None, time_discovered_completed_ns=None)


class Recorder:
    """The recorder of this process, for the calls of all groups of a job."""

    def __init__(self):
        self._calls = deque()
        self._thread = None

    def has_begun(self):
        return self._thread is not None

    def begin(self, size, store, rank, ranks):
        """Starts to record the calls of a new job. ``size``: how many calls to keep; ``rank``: this
        rank; ``ranks``: the number of ranks, which share the store."""
        self.end()
        self._calls = deque()
        self._size = size
        self._dropped = Counter()  # by Call.line: number of calls that are no longer kept
        self._numbers = count()
        self._groups = {}
        self._store, self._rank, self._ranks = store, rank, ranks
        self._lock = threading.Lock()
        self._is_written = False
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._look_out, name='hvd flight recorder',
                                        daemon=True)
        self._thread.start()
        job.at_end(self.end)

    def end(self):
        """Ends the thread, which must not be inside torch when Python ends."""
        thread, self._thread = self._thread, None
        if thread is not None:
            self._end.set()
            job.not_at_end(self.end)
            thread.join(4 * _INTERVAL)

    def add_group(self, name, description, ranks):
        self._groups[name] = {'name': name, 'desc': description, 'ranks': str(ranks)}

    def add(self, line, name, fields):
        """Records a call. ``line``: see Call; ``name``: torchfrtrace's; ``fields``: further fields
        of torch's format."""
        thread = threading.current_thread()
        call = Call(line, name, dict(
            fields, record_id=next(self._numbers), pg_id=0, time_created_ns=time.time_ns(),
            thread_id=str(thread.ident), thread_name=thread.name, frames=_frames()))
        with self._lock:
            if len(self._calls) == self._size:
                oldest = self._calls.popleft()
                oldest.is_kept = False
                self._dropped[oldest.line] += 1
            self._calls.append(call)
        return call

    def move(self, call, line, name):
        """Moves a receive from any rank to the line of its sender, when the sender is known.
        ``line``: see Call."""
        with self._lock:
            if not call.is_kept:
                self._dropped[call.line] -= 1
                self._dropped[line] += 1
            call.line, call.name = line, name

    def write(self):
        """Writes the file after a call has failed. Tells the other ranks and gives them time to
        write theirs, because the launcher may kill them when this rank ends."""
        if not self._write():
            return
        patience_ms = int(_setting('TORCH_FR_WAIT_TIMEOUT_DUMP_MILSEC',
                                   'TORCH_NCCL_WAIT_TIMEOUT_DUMP_MILSEC') or _PATIENCE_MS)
        until = time.monotonic() + patience_ms / 1000
        try:
            self._store.add(f'{_KEY}: a call has failed', 1)
            while (self._store.add(f'{_KEY}: written', 0) < self._ranks
                   and time.monotonic() < until):
                time.sleep(_INTERVAL / 5)
        except RuntimeError:
            pass  # the rank that serves the store has ended

    def _look_out(self):
        try:
            while not self._end.wait(_INTERVAL):
                if self._store.add(f'{_KEY}: a call has failed', 0) > 0:
                    self._write()
                    return
        except RuntimeError:
            pass  # the rank that serves the store has ended

    def _write(self):
        """Writes the file, at the first call only. Returns whether this was the first call."""
        with self._lock:
            if self._is_written:
                return False
            self._is_written = True
        try:
            _replace(_path(self._rank), self._contents())
            self._store.add(f'{_KEY}: written', 1)
        except OSError as error:
            print(f'hvd: rank {self._rank} cannot write its flight record: {error}; '
                  'TORCH_FR_DUMP_TEMP_FILE names another place', file=sys.stderr)
        except RuntimeError:
            pass  # the rank that serves the store has ended
        return True

    def _contents(self):
        with self._lock:
            calls, numbers = list(self._calls), self._dropped.copy()
        return {'version': _VERSION, 'comm_lib_version': 'hvd', 'rank': self._rank,
                'entries': [each.entry(numbers) for each in calls],
                'pg_config': dict(self._groups), 'pg_status': {}}


recorder = Recorder()
