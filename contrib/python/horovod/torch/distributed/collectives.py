# SPDX-License-Identifier: Apache-2.0
"""The collectives of a process group, with torch's names and arguments.

Where torch passes lists of lists, the outer list has one member for each device of this process. A
process of hvd has one device.
"""

from ctypes import c_int32

import torch
import torch.distributed as dist

from horovod.common.library import lib, quick
from horovod.torch.collectives.tensors import gpu_of, is_host, is_supported, usable
from horovod.torch.distributed import reductions, sparse
from horovod.torch.distributed.memory import Memory, Source, Target, bytes_of, seen, write
from horovod.torch.dynamo import uncompiled

_SUM = dist.ReduceOp.SUM
_LARGEST_SPLIT = 2**31 - 1  # libhvd has splits as 32-bit integers


def _only(tensors):
    """Returns the only member of the outer list: the tensor, or the list of tensors, of this
    process's device."""
    if type(tensors) is list and len(tensors) == 1:
        return tensors[0]
    if isinstance(tensors, torch.Tensor):
        return tensors
    raise ValueError(f'{len(tensors)} tensors are given: the backend hvd has one device for each '
                     'rank, so give one')


def _barrier(_, *arguments):
    return quick.barrier_call_start(*arguments)


def start_barrier(calls, options=None):
    """Returns a Work that ends when all ranks of the group have called this."""
    return calls.start(('barrier',), _barrier, [], (calls.set_id,), [], options)


def _after(copies):
    """Combines the functions that are not None into one; returns None if there are none."""
    copies = [each for each in copies if each is not None]
    if len(copies) < 2:
        return copies[0] if copies else None

    def copy_all():
        for each in copies:
            each()

    return copy_all


@uncompiled
class Collectives:
    """The collectives of a process group, as a mix-in."""

    def begin(self, member):
        self.member = member
        self.calls = member.calls
        self.ranks = member.ranks
        self._set = self.calls.set_id
        self._start = self.calls.start

    def _is_root(self, options):
        return self.rank() == options.rootRank

    # --- reductions ---

    def allreduce(self, tensors, opts=_SUM, timeout=None):
        tensor = _only(tensors)
        if tensor.is_sparse:
            return sparse.allreduce(self, tensor, reductions.find(opts, tensor)[0], opts)
        is_in_place = is_host(tensor) or gpu_of(tensor) is not None
        if not is_in_place or not is_supported(tensor.dtype):
            return self._allreduce([tensor], opts)
        # A short path for the most frequent call of training loops.
        word, how = reductions.find(opts, tensor)
        return self._start(('all_reduce', word, tensor.dtype, tensor.numel()), quick.allreduce_start,
                           (Memory(tensor, tensor),), (1, *how, self._set), [tensor], opts)

    def allreduce_coalesced(self, tensors, opts=_SUM):
        return self._allreduce(list(tensors), opts)

    def _allreduce(self, tensors, options):
        word, how = reductions.find(options, tensors[0])
        memories, copies = [], []
        for tensor in tensors:
            dense = usable(tensor)
            elements = seen(dense)
            memories.append(Memory(elements, elements))
            if dense is not tensor:
                copies.append(lambda to=tensor, staged=dense: write(to, staged))
        key = ('all_reduce', word, *_kinds(memories))
        return self._start(key, quick.allreduce_start, memories,
                           (len(tensors), *how, self._set), tensors, options, _after(copies))

    def reduce(self, tensors, opts):
        tensor = _only(tensors)
        word, how = reductions.find(opts, tensor)
        dense = usable(tensor)
        elements = seen(dense)
        copy = None
        if dense is not tensor and self._is_root(opts):
            def copy():
                write(tensor, dense)
        memory = Memory(elements, elements)
        return self._start(('reduce', word, *_kinds([memory]), 'to', opts.rootRank),
                           quick.reduce_start, [memory],
                           (*how, self.ranks[opts.rootRank], self._set), [tensor], opts, copy)

    def _reduce_scatter(self, outputs, inputs, options):
        """Reduces inputs[i] into outputs[i], which gets this rank's part. An input is a list of
        parts or one tensor with all parts."""
        word, how = reductions.find(options, outputs[0])
        memories, copies = [], []
        for output, parts in zip(outputs, inputs):
            target = Target([output])
            given = Source([parts] if isinstance(parts, torch.Tensor) else parts)
            count = target.count * self.size()
            _check_count('reduce_scatter', 'input', given.count, count)
            memories.append(Memory(given.elements, target.elements, (count,)))
            copies.append(target.copy_out)
        key = ('reduce_scatter', word, *_kinds(memories))
        return self._start(key, quick.reducescatter_start, memories,
                           (len(memories), *how, self._set), list(outputs), options,
                           _after(copies))

    def reduce_scatter(self, output_tensors, input_tensors, opts=_SUM):
        output, inputs = _only(output_tensors), _only(input_tensors)
        if any(each.numel() != output.numel() for each in inputs):
            return self._reduce_scatter_unevenly(output, inputs, opts)
        return self._reduce_scatter([output], [inputs], opts)

    def _reduce_scatter_unevenly(self, output, inputs, options):
        """Reduces parts of different sizes. hvd_reducescatter_start makes equal parts only, so all
        ranks reduce all parts with an allreduce, and each copies its own."""
        word, how = reductions.find(options, output)
        whole = torch.cat([each.detach().reshape(-1) for each in inputs])
        elements = seen(whole)
        begin = sum(each.numel() for each in inputs[:self.rank()])

        def take():
            write(output, whole[begin:begin + output.numel()].view(output.shape))

        memory = Memory(elements, elements)
        return self._start(('reduce_scatter', word, *_kinds([memory])), quick.allreduce_start, [memory],
                           (1, *how, self._set), [output], options, take)

    def reduce_scatter_single(self, output, input, opts=_SUM):
        return self._reduce_scatter([output], [input], opts)

    def reduce_scatter_single_coalesced(self, outputs, inputs, opts=_SUM):
        return self._reduce_scatter(outputs, inputs, opts)

    _reduce_scatter_base = reduce_scatter_single
    reduce_scatter_tensor_coalesced = reduce_scatter_single_coalesced

    # --- from one to all, from all to one ---

    def broadcast(self, tensors, opts):
        tensor = _only(tensors)
        dense = usable(tensor)
        elements = seen(dense)
        copy = None
        if dense is not tensor and not self._is_root(opts):
            def copy():
                write(tensor, dense)
        memory = Memory(elements, elements)
        return self._start(('broadcast', *_kinds([memory]), 'from', opts.rootRank),
                           quick.broadcast_start, [memory],
                           (self.ranks[opts.rootRank], self._set), [tensor], opts, copy)

    def gather(self, output_tensors, input_tensors, opts):
        elements = seen(usable(_only(input_tensors)))
        outputs, copy, memory = [], None, Memory(elements)
        if self._is_root(opts):
            outputs = list(output_tensors[0])
            target = Target(outputs)
            _check_count('gather', 'output', target.count, elements.numel() * self.size())
            memory.target, memory.room, copy = target.elements, target.bytes, target.copy_out
        return self._start(('gather', *_kinds([memory]), 'to', opts.rootRank),
                           quick.gather_start, [memory], (self.ranks[opts.rootRank], self._set),
                           outputs, opts, copy)

    def scatter(self, output_tensors, input_tensors, opts):
        output = _only(output_tensors)
        target = Target([output])
        count = target.count * self.size()
        elements = target.elements
        if self._is_root(opts):
            given = Source(list(input_tensors[0]))
            elements = given.elements
            _check_count('scatter', 'input', given.count, count)
        memory = Memory(elements, target.elements, (count,))
        return self._start(('scatter', *_kinds([memory]), 'from', opts.rootRank), quick.scatter_start,
                           [memory], (self.ranks[opts.rootRank], self._set), [output], opts,
                           target.copy_out)

    # --- from all to all ---

    def gather_all(self, outputs, inputs, result, options, finish=None):
        """Gathers inputs[i] of all ranks into outputs[i], which is a list of tensors, or one tensor
        for all of them. ``finish``: a function to call when the outputs are complete."""
        memories, copies = [], []
        for parts, tensor in zip(outputs, inputs):
            target = Target([parts] if isinstance(parts, torch.Tensor) else parts)
            elements = seen(usable(tensor))
            memories.append(Memory(elements, target.elements, room=target.bytes))
            copies.append(target.copy_out)
        key = ('all_gather', *[part for each in memories for part in (each.source.dtype, each.room)])
        return self._start(key, quick.allgather_start, memories, (len(memories), self._set), result,
                           options, _after([*copies, finish]))

    def allgather(self, output_tensors, input_tensors, opts=None):
        outputs = _only(output_tensors)
        if len(outputs) != self.size():
            raise ValueError(f'all_gather: {len(outputs)} output tensors are given, expected '
                             f'{self.size()}: one for each rank')
        return self.gather_all([outputs], [_only(input_tensors)], list(outputs), opts)

    def all_gather_single(self, output, input, opts=None):
        _check_count('all_gather', 'output', output.numel(), input.numel() * self.size())
        return self.gather_all([output], [input], [output], opts)

    def all_gather_single_coalesced(self, outputs, inputs, opts=None):
        return self.gather_all(outputs, inputs, list(outputs), opts)

    def allgather_coalesced(self, output_lists, input_list, opts=None):
        """Gathers input_list[i] of each rank into output_lists[rank][i]."""
        return self.gather_all(list(map(list, zip(*output_lists))), input_list, output_lists, opts)

    _allgather_base = all_gather_single
    allgather_into_tensor_coalesced = all_gather_single_coalesced

    def all_to_all_single(self, output, input, output_split_sizes, input_split_sizes, opts=None):
        target, elements = Target([output]), seen(usable(input))
        return self._all_to_all(Memory(elements, target.elements, room=target.bytes),
                                self._splits('input', input, elements.numel(), input_split_sizes),
                                self._splits('output', output, target.count, output_split_sizes),
                                [output], opts, target.copy_out)

    def _splits(self, which, tensor, count, rows):
        """Returns how many of the tensor's ``count`` elements belong to each rank. ``rows``: the
        number of rows for each rank; empty: equal parts."""
        if not rows:
            if count % self.size() != 0:
                raise ValueError(f'all_to_all_single: the {count} elements of the {which} do not '
                                 f'divide among {self.size()} ranks: give split sizes')
            return [count // self.size()] * self.size()
        _check_splits(which, tensor, rows)
        return [each * count // max(len(tensor), 1) for each in rows]

    alltoall_base = all_to_all_single

    def alltoall(self, output_tensors, input_tensors, opts=None):
        outputs, inputs = list(output_tensors), list(input_tensors)
        target, given = Target(outputs), Source(inputs)
        width = given.elements.element_size()
        memory = Memory(given.elements, target.elements, (given.count,), target.bytes)
        return self._all_to_all(memory, [bytes_of(each) // width for each in inputs],
                                [bytes_of(each) // width for each in outputs], outputs, opts,
                                target.copy_out)

    def _all_to_all(self, memory, sent, expected, result, options, copy):
        """Starts an all_to_all. ``sent`` and ``expected``: the number of elements to and from each
        rank. Each pair of ranks has its own numbers, so they cannot be part of the name; finish()
        compares what has arrived with what was expected."""
        size = self.size()
        _check_largest(sent)
        received = (c_int32 * size)()

        def finish():
            lib.hvd_request_splits(work.pointer(), received)
            if list(received) != expected:
                raise ValueError(f'all_to_all: the ranks of the group have sent {list(received)} '
                                 f'elements to rank {self.rank()}, which expected {expected}')
            if copy is not None:
                copy()

        work = self._start(('all_to_all', memory.source.dtype), quick.alltoall_start, [memory],
                           ((c_int32 * size)(*sent), size, self._set), result, options, finish)
        return work

    def barrier(self, opts=None):
        return start_barrier(self.calls, opts)


def _kinds(memories):
    """Returns the part of a call's name that describes its tensors: dtypes and numbers of elements.
    Shapes may differ between ranks, as with Gloo."""
    return [part for each in memories for part in (each.source.dtype, each.shape[0])]


def _check_largest(splits):
    if max(splits) > _LARGEST_SPLIT:
        raise ValueError(f'all_to_all: {max(splits)} elements go to one rank, more than the backend '
                         f'hvd takes in one call ({_LARGEST_SPLIT}): send them in several')


def _check_count(operation, which, count, expected):
    if count != expected:
        raise ValueError(f'{operation}: the {which} has {count} elements in all, expected '
                         f'{expected}: as many for each rank')


def _check_splits(which, tensor, splits):
    if sum(splits) != len(tensor):
        raise ValueError(f'all_to_all_single: the {which} has {len(tensor)} rows, but its split '
                         f'sizes {list(splits)} add up to {sum(splits)}')
