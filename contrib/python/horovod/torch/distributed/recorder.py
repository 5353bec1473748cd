# SPDX-License-Identifier: Apache-2.0
"""torch's flight recorder: the last calls of this rank, written to a file that torchfrtrace reads when a
call fails on any rank. Set up by torch's variables."""

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

_VERSION = '2.10'  # of torch's format, which has the fields below
_MOST_FRAMES = 20
_KEY = 'hvd flight recorder'
_INTERVAL = 0.5  # seconds between looks at whether another rank has failed
_PATIENCE_MS = 5000

# What goes to all ranks, from the lower one of two to the higher, and back.
ALL, UP, DOWN = range(3)


def _setting(*names):
    """The first variable that is set, of torch's names of now and of older releases."""
    return next(filter(None, map(os.environ.get, names)), None)


def size_asked_for():
    """How many calls are to be kept; 0: none are to be recorded."""
    return int(_setting('TORCH_FR_BUFFER_SIZE', 'TORCH_NCCL_TRACE_BUFFER_SIZE') or 0)


def _path(rank):
    """Where this rank's file goes: the user's own folder, as with torch's recorder of NCCL, unless a
    variable names another."""
    prefix = _setting('TORCH_FR_DUMP_TEMP_FILE', 'TORCH_NCCL_DEBUG_INFO_TEMP_FILE')
    if prefix is None:
        cache = os.environ.get('XDG_CACHE_HOME') or os.path.expanduser('~/.cache')
        folder = os.path.join(cache, 'hvd')
        os.makedirs(folder, mode=0o700, exist_ok=True)
        prefix = os.path.join(folder, 'trace_rank_')
    return f'{prefix}{rank}'


def _replace(path, contents):
    """Writes a file that only the user may read. Links of other users in a folder such as /tmp are not
    followed: the new file has a name that nobody can guess, and the rename replaces a link itself.
    torchfrtrace must not take the unfinished file for a rank's: its name has neither their prefix nor a
    number at its end."""
    descriptor, part = tempfile.mkstemp('.part', '.hvd-', os.path.dirname(path) or '.')
    try:
        with open(descriptor, 'wb') as file:
            pickle.dump(contents, file)
        os.replace(part, path)
    except BaseException:
        os.unlink(part)
        raise


def _frames():
    """The lines of Python that have called the group, the innermost first."""
    frame, found = sys._getframe(), []
    while frame is not None and frame.f_globals['__name__'].startswith(__package__):
        frame = frame.f_back
    while frame is not None and len(found) < _MOST_FRAMES:
        code = frame.f_code
        found.append({'name': code.co_name, 'filename': code.co_filename, 'line': frame.f_lineno})
        frame = frame.f_back
    return found


class Call:
    """One call. Its Work is not kept alive, since that keeps the caller's tensors. ``line``: the group, and
    ALL, UP or DOWN; the ranks make the calls of a line in the same order."""

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
        """``numbers``: of the last calls of each line before this one."""
        work = None if self._work is None else self._work()
        is_over = self._work is not None and (work is None or work.is_success())
        state = 'completed' if is_over and not self.has_failed else 'scheduled'
        numbers[self.line] += 1  # after is_success, which may have told the sender of a message
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
    """Of this process: the calls of all groups of a job."""

    def __init__(self):
        self._calls = deque()
        self._thread = None

    def has_begun(self):
        return self._thread is not None

    def begin(self, size, store, rank, ranks):
        """A job begins: this process is rank ``rank`` of ``ranks``, who share the store."""
        self.end()
        self._calls = deque()
        self._size = size
        self._dropped = Counter()  # calls of each line that are kept no more
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
        """Python must not end while the thread is in torch."""
        thread, self._thread = self._thread, None
        if thread is not None:
            self._end.set()
            job.not_at_end(self.end)
            thread.join(4 * _INTERVAL)

    def add_group(self, name, description, ranks):
        self._groups[name] = {'name': name, 'desc': description, 'ranks': str(ranks)}

    def add(self, line, name, fields):
        """``line`` and ``name``: see Call, and torchfrtrace."""
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
        """The sender of a message is known now, and so is the line of the call."""
        with self._lock:
            if not call.is_kept:
                self._dropped[call.line] -= 1
                self._dropped[line] += 1
            call.line, call.name = line, name

    def write(self):
        """A call has failed. The other ranks are told, and get some time to write too: they may be
        ended when this one is."""
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
            pass  # the rank that has the store is gone

    def _look_out(self):
        try:
            while not self._end.wait(_INTERVAL):
                if self._store.add(f'{_KEY}: a call has failed', 0) > 0:
                    self._write()
                    return
        except RuntimeError:
            pass  # as above

    def _write(self):
        """Returns whether this was the first time."""
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
            pass  # as above
        return True

    def _contents(self):
        with self._lock:
            calls, numbers = list(self._calls), self._dropped.copy()
        return {'version': _VERSION, 'comm_lib_version': 'hvd', 'rank': self._rank,
                'entries': [each.entry(numbers) for each in calls],
                'pg_config': dict(self._groups), 'pg_status': {}}


recorder = Recorder()
