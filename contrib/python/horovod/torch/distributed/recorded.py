# SPDX-License-Identifier: Apache-2.0
"""A process group whose calls are recorded for torchfrtrace. It is a class of its own, so that
recording costs nothing when it is off."""

import torch

from horovod.torch.distributed.group import Group
from horovod.torch.distributed.recorder import ALL, DOWN, UP, recorder, size_asked_for
from horovod.torch.dynamo import uncompiled

# torchfrtrace's names for the methods of the group. The first two arguments of these methods are
# the outputs and the inputs; those of _IN_PLACE have one argument for both.
_INTO_OTHERS = {
    'gather': 'gather', 'scatter': 'scatter', 'reduce_scatter': 'reduce_scatter',
    'reduce_scatter_single': '_reduce_scatter_base',
    'reduce_scatter_single_coalesced': 'reduce_scatter_tensor_coalesced',
    'allgather': 'all_gather', 'all_gather_single': '_all_gather_base',
    'all_gather_single_coalesced': 'all_gather_into_tensor_coalesced',
    'allgather_coalesced': 'allgather_coalesced', 'all_to_all_single': 'all_to_all',
    'alltoall': 'all_to_all'}
_IN_PLACE = {'allreduce': 'all_reduce', 'allreduce_coalesced': 'allreduce_coalesced',
             'reduce': 'reduce', 'broadcast': 'broadcast'}


def _flat(tensors):
    """Returns the tensors in nested lists as one list."""
    if isinstance(tensors, torch.Tensor):
        return [tensors]
    return [each for part in tensors for each in _flat(part)]


def _description(which, tensors):
    tensors = _flat(tensors)
    return {f'{which}_sizes': [tuple(each.shape) for each in tensors],
            f'{which}_dtypes': [str(each.dtype).rpartition('.')[2] for each in tensors]}


class RecordedGroup(Group):
    """A Group that records each call before it makes it. _record_method() replaces most methods of
    Group, at the end of this file."""

    def __init__(self, member):
        store, label = member.store, member.label
        super().__init__(member)
        if label is None or not recorder.has_begun():
            recorder.begin(size_asked_for(), store, self.ranks[member.rank], member.size)
        self._recorded_as = label or '0', 'undefined' if label else 'default_pg'
        recorder.add_group(*self._recorded_as, self.ranks)

    def shutdown(self):
        super().shutdown()
        if self.member.label is None:
            recorder.end()

    def _add(self, line, name, inputs, outputs):
        return recorder.add(line, name, {
            'timeout_ms': int(self.calls.timeout * 1000),
            **_description('input', inputs), **_description('output', outputs)})

    def _record(self, call, start):
        try:
            work = start()
        except RuntimeError as failure:
            if not isinstance(failure, NotImplementedError):
                call.fail()
            raise
        call.follow(work)
        return work

    def _collective(self, name, inputs, outputs, start):
        return self._record(self._add((self._recorded_as, ALL), name, inputs, outputs), start)

    def _line(self, peer, tag, is_sent):
        """Returns the line of a message (see recorder.Call) and its name. torchfrtrace expects each
        call of a group on all its ranks. So messages between two ranks are recorded as calls of a
        group of these two, with one line for each direction."""
        low, high = sorted((self.member.rank, peer))
        group = f'{self._recorded_as[0]}: {low} and {high}, tag {tag}', 'messages'
        recorder.add_group(*group, [self.ranks[low], self.ranks[high]])
        me, other = (0, 1) if self.member.rank == low else (1, 0)
        name = f'send {me}->{other}' if is_sent else f'recv {me}<-{other}'
        return (group, UP if is_sent == (me == 0) else DOWN), name

    def send(self, tensors, dst, tag=0):
        return self._record(self._add(*self._line(dst, tag, True), tensors, []),
                            lambda: Group.send(self, tensors, dst, tag))

    def recv(self, tensors, src, tag=0):
        return self._record(self._add(*self._line(src, tag, False), [], tensors),
                            lambda: Group.recv(self, tensors, src, tag))

    def recv_anysource(self, tensors, tag=0):
        """Records the receive as a call of this rank alone. When the message has arrived, moves it
        to the line (see recorder.Call) of messages from its sender."""
        rank = self.member.rank
        group = f'{self._recorded_as[0]}: any rank to {rank}, tag {tag}', 'messages'
        recorder.add_group(*group, [self.ranks[rank]])
        call = self._add((group, UP), 'recv 0<-?', [], tensors)
        return self._record(call, lambda: Group.recv_anysource(
            self, tensors, tag, lambda src: recorder.move(call, *self._line(src, tag, False))))

    def barrier(self, opts=None):
        return self._collective('barrier', [], [], lambda: Group.barrier(self, opts))


def _record_method(method, name, is_in_place):
    function = getattr(Group, method)

    def recorded(self, *tensors, **named):
        outputs, inputs = (tensors[0], tensors[0]) if is_in_place else tensors[:2]
        return self._collective(name, inputs, outputs,
                                lambda: function(self, *tensors, **named))

    for alias in [each for each in dir(Group) if getattr(Group, each) is function]:
        setattr(RecordedGroup, alias, recorded)


for _each, _name in {**_INTO_OTHERS, **_IN_PLACE}.items():
    _record_method(_each, _name, _each in _IN_PLACE)
uncompiled(RecordedGroup)
