# SPDX-License-Identifier: Apache-2.0
"""Runs random collectives of a front end and compares the results with the reference.

HVD_TEST_SEED repeats a run; with it, HVD_TEST_CASE=N runs only the case with this number.
HVD_TEST_TABLE=1 prints how often each collective was checked with each op and dtype.

A front end is described by an object with these attributes:
    kinds           the kinds of cases (cases.Case)
    repeats         the number of cases for each kind, op and dtype
    variants        {kind: [(function, whether it accepts a group)]}
    layouts         memory layouts of tensors, besides the plain one
    compressions    {function: names of the compressions that it accepts}
    scaled          the kinds that accept prescale and postscale factors
    takes_sets      whether it has process sets (default True)
    scatter_ops     the ops that reducescatter accepts (default HOROVOD_SCATTER_OPS)
    errors          {reason: exceptions}, see reasons()
    foreign         names of dtypes that it rejects
    dtypes(kind), quotient_dtype(dtype), run(case, seed, process_set), run_foreign(dtype)
"""

import os
import time
import traceback
import unittest
from collections import Counter
from dataclasses import dataclass, field

import numpy as np

import tap
from horovod.common.basics import basics
from horovod.common.objects import broadcast_object
from horovod.common.process_sets import add_process_set, global_process_set
from ranks import leave
from reference import arithmetic
from reference.arithmetic import ALL, FLOATS, INTEGERS
from reference.cases import Drawer, as_carried

_MOST_FAILURES = 8  # failures that are printed in full


@dataclass
class Outcome:
    """The outcome of a case. ``results``: pairs of an array and the name of its dtype. ``after``:
    the inputs after the call. ``indices``: for each tensor, the indices of its rows if it is
    sparse, otherwise None. ``received``: the received splits of an alltoall."""
    results: list
    after: list
    indices: list = field(default_factory=list)
    received: list = None


HOROVOD_SCATTER_OPS = ('Average', 'Sum')


def reasons(case, scatter_ops):
    """Returns the reasons for which the case must be rejected; an empty list if it has a result."""
    found = []
    if case.op == 'Average' and 'bool' in case.dtypes:
        found.append('average of booleans')
    if case.op == 'Adasum' and case.size() & (case.size() - 1):
        found.append('Adasum of these ranks')
    if case.op == 'Adasum' and not set(case.dtypes) <= set(FLOATS):
        found.append('Adasum of integers')
    if case.kind == 'reducescatter' and case.op not in scatter_ops:
        found.append('op of a reducescatter')
    if case.kind in ('sparse', 'mixed') and case.op not in ('Average', 'Sum'):
        found.append('op of a sparse tensor')
    if case.kind in ('reducescatter', 'allgather', 'alltoall') and () in case.shapes:
        found.append('no dimension')
    return found


def _wire(case, dtype):
    names = {'fp16': 'float16', 'bf16': 'bfloat16'}
    return names.get(case.compression) if dtype in FLOATS else None


def _own_rows(whole, place, size):
    few, more = divmod(len(whole), size)
    begin = place * few + min(place, more)
    return whole[begin:begin + few + (place < more)]


class Expected:
    """The expected results of a case on one rank."""

    def __init__(self, front, case, seed, place):
        self._front, self._case, self._seed, self._place = front, case, seed, place

    def of(self, index):
        """Returns the expected array of one tensor, its largest allowed error and its dtype."""
        case, dtype = self._case, self._case.dtypes[index]
        inputs = case.inputs(self._seed, index)
        if case.is_sparse(index):
            return self._rows(np.concatenate(inputs), dtype)
        if case.kind in ('allreduce', 'mixed'):
            return (*arithmetic.reduced(case.op, dtype, inputs, case.scale, _wire(case, dtype)),
                    dtype)
        if case.kind == 'reducescatter':
            value, error = arithmetic.reduced(case.op, dtype, inputs, case.scale,
                                              _wire(case, dtype))
            error = np.broadcast_to(error, value.shape)
            return (_own_rows(value, self._place, case.size()),
                    _own_rows(error, self._place, case.size()), dtype)
        if case.kind == 'allgather':
            return np.concatenate(inputs), 0, dtype
        if case.kind == 'broadcast':
            return inputs[case.ranks.index(case.root)], 0, dtype
        return np.concatenate([self._sent(inputs, source) for source in range(case.size())]), \
            0, dtype

    def _rows(self, gathered, dtype):
        """Returns what of() returns for a sparse tensor, from the gathered rows of all ranks."""
        factor = self._case.scale[0] * self._case.scale[1]
        if self._case.op == 'Sum' and dtype in INTEGERS:
            return arithmetic.scaled_integers(gathered, factor, dtype), 0, dtype
        if self._case.op == 'Sum' and (dtype == 'bool' or factor == 1.0):
            return gathered, 0, dtype
        count = self._case.size() if self._case.op == 'Average' else 1
        result_dtype = self._front.quotient_dtype(dtype) if self._case.op == 'Average' else dtype
        return (*arithmetic.divided_rows(gathered, factor, count, result_dtype), result_dtype)

    def _sent(self, inputs, source):
        """Returns the rows that this rank gets from another rank in an alltoall."""
        splits = self._splits(source)
        begin = sum(splits[:self._place])
        return inputs[source][begin:begin + splits[self._place]]

    def _splits(self, source):
        case = self._case
        return case.splits[source] if case.splits else \
            [case.rows[source] // case.size()] * case.size()

    def received(self):
        return [self._splits(source)[self._place] for source in range(self._case.size())]

    def indices(self, index):
        """Returns the expected indices of a sparse tensor."""
        return np.concatenate([self._case.indices(self._seed, index, place)
                               for place in range(self._case.size())])


def arguments(case, hvd, process_set, place):
    """Returns the keyword arguments, besides the tensors, for the functions of the front end
    ``hvd``."""
    found = {'process_set': process_set}
    if case.op:
        found.update(op=getattr(hvd, case.op), prescale_factor=case.scale[0],
                     postscale_factor=case.scale[1])
    if case.compression != 'none':
        found['compression'] = getattr(hvd.Compression, case.compression)
    if case.kind == 'broadcast':
        found['root_rank'] = case.root
    if case.splits:
        found['splits'] = list(case.splits[place])
    return found


class ReferenceTest(unittest.TestCase):
    """The base of the tests. The test of a front end sets ``front`` to its description."""

    front = None

    @classmethod
    def setUpClass(cls):
        leave()
        basics.init(process_sets='dynamic')
        size = basics.size()
        given = os.environ.get('HVD_TEST_SEED')
        cls.seed = int(given) if given else broadcast_object(int(time.time()) % 1000000)
        subsets = {(0,), tuple(range(1, size)), tuple(range(0, size, 2))}
        subsets = sorted(each for each in subsets if 0 < len(each) < size)
        cls.sets = [global_process_set] + [add_process_set(each) for each in subsets]
        if basics.rank() == 0:
            tap.note(f'seed {cls.seed} (repeat with HVD_TEST_SEED={cls.seed})')

    @classmethod
    def tearDownClass(cls):
        leave()  # the next test begins without process sets

    def test_every_collective_gives_the_reference(self):
        only = os.environ.get('HVD_TEST_CASE')
        failures, self.counts = [], Counter()
        sets = self.sets if getattr(self.front, 'takes_sets', True) else self.sets[:1]
        drawer = Drawer(self.front, self.seed, [each.ranks for each in sets])
        for case in drawer.all():
            if basics.rank() in case.ranks and only in (None, str(case.number)):
                wrong = self.verdict(case)
                if wrong:
                    failures.append(f'HVD_TEST_SEED={self.seed} HVD_TEST_CASE={case.number}: '
                                    f'{case}\n    {wrong}')
        if os.environ.get('HVD_TEST_TABLE') and basics.rank() == 0:
            self.print_table()
        if failures:
            self.fail('\n'.join([f'{len(failures)} cases are wrong', *failures[:_MOST_FAILURES]]))

    def verdict(self, case):
        """Runs a case. Returns a text that says what is wrong, or None."""
        refused = reasons(case, getattr(self.front, 'scatter_ops', HOROVOD_SCATTER_OPS))
        accepted = tuple({kind for reason in refused for kind in self.front.errors[reason]})
        try:
            outcome = self.front.run(case, self.seed, self.sets[case.set_index])
        except Exception as error:
            self.count(case, 'refused')
            if isinstance(error, accepted):
                return None
            return f'raised {traceback.format_exc()}'
        self.count(case, 'checked')
        if refused:
            return f'was not refused: {refused[0]}'
        return self.compared(case, outcome)

    def compared(self, case, outcome):
        place = case.ranks.index(basics.rank())
        expected = Expected(self.front, case, self.seed, place)
        for index, (result, dtype) in enumerate(outcome.results):
            value, error, right_dtype = expected.of(index)
            if dtype != right_dtype:
                return f'tensor {index} is of {dtype}, not {right_dtype}'
            result = as_carried(result, dtype)
            if not arithmetic.agree(result, value, error):
                return (f'tensor {index}, {dtype}{result.shape}: {_difference(result, value)}')
            if case.is_sparse(index) and not np.array_equal(outcome.indices[index],
                                                            expected.indices(index)):
                return f'tensor {index} has the indices {outcome.indices[index]}'
            wrong = self.changed(case, outcome, index, result)
            if wrong:
                return wrong
        if case.kind == 'alltoall' and outcome.received not in (None, expected.received()):
            return f'received {outcome.received}, not {expected.received()}'
        return None

    def changed(self, case, outcome, index, result):
        """Checks that an operation in place has overwritten its input with the result, and that any
        other operation has left it unchanged. Returns a text that says what is wrong, or None."""
        if case.is_sparse(index):
            return None
        place = case.ranks.index(basics.rank())
        right = result if case.variant.endswith('_') else case.inputs(self.seed, index)[place]
        after = as_carried(outcome.after[index], case.dtypes[index])
        if arithmetic.agree(after, right, np.zeros(right.shape)):
            return None
        return f'input {index} is now {after}, not {right}'

    def count(self, case, what):
        kind = f'grouped {case.kind}' if case.is_group else case.kind
        for dtype in case.dtypes:
            self.counts[kind, case.op, dtype, what] += 1

    def print_table(self):
        """Prints a line for each collective and op: for each dtype, how many tensors were checked
        and, after a slash, rejected."""
        rows = sorted({key[:2] for key in self.counts})
        name = max(len(' '.join(row)) for row in rows)
        tap.note(f'{self.front.name}, {basics.size()} ranks: tensors checked/refused')
        tap.note(' '.join([' ' * name, *(f'{dtype:>8}' for dtype in ALL)]))
        for row in rows:
            cells = [f'{self.counts[(*row, dtype, "checked")]}/'
                     f'{self.counts[(*row, dtype, "refused")]}' for dtype in ALL]
            cells = ['-' if cell == '0/0' else cell for cell in cells]
            tap.note(' '.join([f'{" ".join(row):{name}}', *(f'{cell:>8}' for cell in cells)]))

    def test_foreign_dtypes_are_refused(self):
        for dtype in self.front.foreign:
            with self.subTest(dtype=dtype), self.assertRaises(self.front.errors['dtype']):
                self.front.run_foreign(dtype)


def _difference(result, expected):
    if result.shape != expected.shape:
        return f'not {expected.shape}'
    wrong = [index for index in np.ndindex(result.shape)
             if not (result[index] == expected[index]
                     or (result[index] != result[index] and expected[index] != expected[index]))]
    worst = max(wrong, default=(), key=lambda index: abs(float(result[index])
                                                          - float(expected[index])))
    return (f'at {worst} it is {result[worst]!r}, not {expected[worst]!r}; {len(wrong)} of '
            f'{result.size} elements differ')
