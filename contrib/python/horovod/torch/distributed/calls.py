# SPDX-License-Identifier: Apache-2.0
"""The calls of a process group, and how they are named for libhvd.

torch matches the calls of a group's ranks by their order, libhvd by names. Here a name consists of
the properties that must be equal on all ranks (operation, dtype, number of elements, root, ...) and
a number that counts the calls with these properties, modulo 16. So a training loop uses the same
names in every step, which is fastest in libhvd, and several calls of one kind can be under way at
once. The numbers are equal on all ranks because the ranks make the same calls. libhvd also gets the
position of each call in its group, so that it can report ranks whose calls differ: see ``call`` of
struct hvd_tensor.
"""

import threading
import zlib
from collections import deque
from ctypes import byref, c_int64, c_uint64, c_void_p

from horovod.common import membership
from horovod.common.library import (CALL_UNORDERED, DEVICE_CPU, SET_GLOBAL, Error, Tensor,
                                    check_submitted, quick)
from horovod.torch.collectives.tensors import number
from horovod.torch.distributed import sets
from horovod.torch.distributed.waiter import Waiter, depth
from horovod.torch.distributed.work import Work

# The number of calls of one kind that can be under way at once. A further call starts when the call
# 16 before it has ended.
_AT_ONCE = 16
_LONGEST_NAME = 200

# Functions whose requests libhvd can start again if the tensors are in host memory.
_PERSISTENT = (quick.allreduce_start, quick.broadcast_start, quick.reducescatter_start,
               quick.reduce_start, quick.scatter_start)

# Limits the memory for shapes that are not used again: each takes an object Kind of a few KiB.
_MOST_KINDS = 4096


class Slot:
    """A name, described to libhvd once, and the queue of its calls: the first is under way, the
    next one starts when it has ended."""

    __slots__ = ('name', 'pointer', '_line', '_lock', '_tensors', '_shapes', '_reference',
                 '_last')
    is_message = False

    def __init__(self, name, count):
        self.name = name
        self.pointer = c_void_p()  # the request under way, or a persistent one
        self._last = None  # function and arguments of the persistent request, if there is one
        self._line = deque()
        self._lock = threading.Lock()
        self._reference = byref(self.pointer)
        self._tensors = (Tensor * count)()
        self._shapes = [None] * count
        for index, each in enumerate(self._tensors):
            each.name = (name if count == 1 else f'{name} {index + 1}of{count}').encode()

    def is_in_use(self):
        return bool(self._line)

    def first(self):
        """Returns the first work in the queue, or None. Its request may have ended already, if no
        thread has checked yet."""
        line = self._line
        return line[0] if line else None

    def line_to(self, work):
        """Returns the works in the queue up to and including this one; none if it has ended."""
        with self._lock:
            works = list(self._line)
        return works[:works.index(work) + 1] if work in works else []

    def enter(self, work):
        """Starts the call if the queue is empty, and adds it to the queue. Returns whether it has
        started."""
        with self._lock:
            if not self._line:
                self._start(work)
            self._line.append(work)
            return work.is_started

    def leave(self, work):
        """Removes the first work, which has ended, and starts the next one."""
        with self._lock:
            if self._last is None:
                self._free()
            self._line.popleft()
            while self._line:
                following = self._line[0]
                try:
                    self._start(following)
                    break
                except Exception as failure:
                    following.fail(failure)
                    self._line.popleft()
            work.is_over = True

    def _start(self, work):
        """Starts a call in libhvd. ``work.call``: the function of libhvd, the memories of the
        tensors, and the function's arguments between the tensors and the request."""
        function, memories, arguments = work.call
        is_same = True
        for index, memory in enumerate(memories):
            is_same = self._describe(index, memory) and is_same
            if work.started_on is not None:
                self._tensors[index].stream = work.started_on
        if self._last is not None:
            if (is_same and self._last == (function, arguments)
                    and quick.request_start(self.pointer, self._tensors, None) == 0):
                work.is_started = True
                return
            self._last = None
            self._free()
        if function(self._tensors, *arguments, self._reference, None) != 0:
            error = Error()
            status = function(self._tensors, *arguments, self._reference, byref(error))
            check_submitted(status, error)
        if function in _PERSISTENT and work.stream is None:
            self._last = function, arguments
        work.is_started = True

    def _describe(self, index, memory):
        """Describes a tensor to libhvd. Returns whether its shape is that of the last call."""
        each, source, target = self._tensors[index], memory.source, memory.target
        each.device = DEVICE_CPU if source.is_cpu else source.get_device()
        each.input = source.data_ptr()
        each.output = None if target is None else target.data_ptr()
        each.output_bytes = memory.room
        each.call = memory.call
        if self._shapes[index] == memory.shape:
            return True
        each.shape = (c_int64 * len(memory.shape))(*memory.shape)
        each.ndim = len(memory.shape)
        each.dtype = number(source)
        self._shapes[index] = memory.shape
        return False

    def _free(self):
        """Frees a request that has ended."""
        ended, self.pointer.value = self.pointer.value, None
        quick.request_free(ended)


    def __del__(self):
        if self._last is not None and not self._line and not membership.is_inherited():
            self._free()


class Message(Slot):
    """A slot for one send or receive, whose name is used in errors only. The works under way are in
    a set, which keeps their tensors alive if the caller drops the work."""

    __slots__ = ('_under_way',)
    is_message = True

    def __init__(self, name, under_way):
        super().__init__(name, 1)
        self._under_way = under_way

    def enter(self, work):
        super().enter(work)
        self._under_way.add(work)

    def leave(self, work):
        super().leave(work)
        self._under_way.discard(work)


class Kind:
    """The slots of all calls with equal properties: the same operation, dtype, size, ..."""

    __slots__ = ('_name', '_count', '_next', '_slots')

    def __init__(self, name, count):
        self._name = name
        self._count = count
        self._next = 0
        self._slots = []

    def in_use(self):
        return [each for each in self._slots if each.is_in_use()]

    def next_slot(self):
        """Returns the slot for the next call."""
        index = self._next
        self._next = (index + 1) % _AT_ONCE
        if index == len(self._slots):
            self._slots.append(Slot(f'{self._name}#{index}', self._count))
        return self._slots[index]


class Numbers:
    """Counts the calls in one process set of libhvd, which all ranks must make in the same order.

    A callback of a future may make calls, and it runs earlier on a rank where its call ends
    earlier. So the order of calls may differ between ranks until all callbacks have run. Calls
    during that time are counted, but marked as unordered: libhvd does not compare their order."""

    __slots__ = ('_count', '_futures', '_lock')

    def __init__(self):
        self._count = 0
        self._futures = 0  # the number of futures that are not completed
        self._lock = threading.Lock()

    def next(self):
        """Returns the number of the next call in libhvd's form, with CALL_UNORDERED if needed."""
        with self._lock:
            self._count += 1
            return self._count | (CALL_UNORDERED if self._futures > 0 else 0)

    def take_back(self):
        """Uncounts the last call, which could not be started."""
        with self._lock:
            self._count -= 1

    def suspend(self):
        """Makes calls unordered from now on: the script has a future of a call under way."""
        with self._lock:
            self._futures += 1

    def resume(self):
        """Ends the effect of one suspend(): the future is completed and its callbacks have run."""
        with self._lock:
            self._futures -= 1


# Counts the calls of the default group. A job may have several default groups, one after the other,
# which share this object.
_of_default_groups = Numbers()


def _text(part):
    if isinstance(part, tuple):
        return 'x'.join(map(_text, part))
    return str(part).rpartition('.')[2]  # torch.float32 becomes float32


class Calls:
    """The calls of one process group. ``prefix`` makes its names differ from those of other groups
    in the same process set of libhvd; ``timeout``: the group's, in seconds."""

    def __init__(self, prefix, set_id, timeout):
        self.set_id = set_id
        self.timeout = timeout
        self._prefix = prefix
        self._kinds = {}
        self.numbers = _of_default_groups if set_id == SET_GLOBAL else Numbers()
        self._generation = 0
        self._age = ''
        self._retired = []  # slots in use when _start_over() forgot their kinds
        self._lock = threading.Lock()
        self._waiters = {}  # {depth of the calling threads, see waiter.depth(): their Waiter}
        self._messages = set()
        self._many_messages = _AT_ONCE

    def _find(self, key, count):
        kind = self._kinds.get(key)
        if kind is None:
            if len(self._kinds) >= _MOST_KINDS:
                self._start_over()
            name = self._prefix + self._age + ' '.join(map(_text, key))
            if len(name) > _LONGEST_NAME:
                name = f'{name[:_LONGEST_NAME]}..{zlib.crc32(name.encode()):08x}'
            kind = self._kinds[key] = Kind(name, count)
        return kind

    def _start_over(self):
        """Forgets all kinds; all ranks do so at the same call. New names differ from the old ones,
        some of which are still in use."""
        self._generation += 1
        self._age = f'{self._generation}. '
        kinds = self._kinds.values()
        self._retired = [each for each in self._retired if each.is_in_use()]
        self._retired += [each for kind in kinds for each in kind.in_use()]
        self._kinds = {}

    def start(self, key, function, memories, arguments, result, options, finish=None):
        """Starts a call and returns its Work.

        key: the properties that are equal on all ranks, for the name.
        function, memories, arguments: see Slot._start.
        result: the tensors that receive the result.
        options: torch's options of the call, which may have a timeout.
        finish: a function to call when the request has ended, or None.
        """
        slot = self._find(key, len(memories)).next_slot()
        call = self.numbers.next()
        for each in memories:
            each.call = call
        if not memories:  # a barrier
            arguments = *arguments, c_uint64(call)
        work = Work(self, slot, (function, memories, arguments), result, finish, options)
        before = slot.first()
        if before is not None:
            before.is_completed()
        try:
            if not slot.enter(work):
                self.waiter().add(work)
        except BaseException:
            self.numbers.take_back()  # the script may correct the call and repeat it
            raise
        return work

    def start_message(self, name, function, memory, arguments, result, finish=None):
        """Starts a send or receive; returns its Work."""
        # Remove messages that have ended, even if the script never waits for them.
        if len(self._messages) >= self._many_messages:
            for each in list(self._messages):
                each.is_completed()
            self._many_messages = max(2 * len(self._messages), _AT_ONCE)
        slot = Message(self._prefix + name, self._messages)
        work = Work(self, slot, (function, (memory,), arguments), result, finish, None)
        slot.enter(work)
        return work

    def waiter(self):
        """Returns the Waiter for calls that this thread makes."""
        with self._lock:
            at = depth()
            if at not in self._waiters:
                self._waiters[at] = Waiter(at)
            return self._waiters[at]

    def abort(self, why):
        """Makes the calls of all members fail, unless the group is the whole job."""
        if self.set_id != SET_GLOBAL:
            try:
                sets.abort_set(self.set_id, why)
            except RuntimeError:
                pass  # the job is over

    def end(self):
        """Ends the waiters; the group makes no more calls."""
        for each in list(self._waiters.values()):
            each.end()
