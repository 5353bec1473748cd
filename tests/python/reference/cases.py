# SPDX-License-Identifier: Apache-2.0
"""Random cases: a collective, its tensors, and the inputs of all ranks.

A case and its inputs depend only on the seed and the number of the case. So every rank draws the
same cases, and one case can be repeated alone.
"""

import itertools
from dataclasses import dataclass, replace

import numpy as np

from reference.arithmetic import ALL, FLOATS, INTEGERS, OPS, carrier, rounded

REDUCTIONS = ('allreduce', 'reducescatter', 'sparse', 'mixed')
_SHAPES = ((), (0,), (1,), (5,), (17,), (3, 4), (0, 3), (3, 0, 2), (2, 3, 4), (7, 1, 3))
_LARGE = (3001,)
_SCALES = (0.5, 1 / 3, 2.0, -1.5, 0.1, 3.0)


@dataclass(frozen=True)
class Case:
    """A collective with its arguments. ``shapes`` and ``dtypes`` have an element for each tensor of
    a group."""
    number: int
    kind: str  # allreduce, reducescatter, allgather, broadcast, alltoall, sparse, mixed
    op: str  # one of OPS; '' if the collective does not reduce
    is_group: bool
    shapes: tuple
    dtypes: tuple
    ranks: tuple  # the ranks of the process set
    set_index: int  # index in the list of sets; 0 is the global set
    variant: str = ''  # the function of the front end
    layout: str = 'plain'  # or transposed, strided, offset: the memory layout of tensors
    values: str = 'small'  # or wide, special: see draw()
    scale: tuple = (1.0, 1.0)
    compression: str = 'none'
    root: int = 0
    rows: tuple = ()  # the number of rows on each rank of the set; (): that of the shapes
    splits: tuple = ()  # of an uneven alltoall: a tuple for each rank of the set

    def size(self):
        return len(self.ranks)

    def is_sparse(self, index):
        """Whether a tensor is sparse. In a mixed group, every second tensor is."""
        return self.kind == 'sparse' or (self.kind == 'mixed' and index % 2 == 1)

    def shape(self, index, place):
        """Returns the shape of a tensor on the rank at this index of the set."""
        is_same = self.kind == 'mixed' and not self.is_sparse(index)
        if not self.rows or not self.shapes[index] or is_same:
            return self.shapes[index]
        return (self.rows[place], *self.shapes[index][1:])

    def inputs(self, seed, index):
        """Returns the inputs of all ranks of the set for one tensor."""
        return [self._values(seed, index, place) for place in range(self.size())]

    def indices(self, seed, index, place):
        """Returns the indices of the rows in a rank's sparse tensor; some indices occur twice."""
        random = np.random.RandomState([seed, self.number, index, place, 7])
        return random.randint(0, 4, self.shape(index, place)[0])

    def _values(self, seed, index, place):
        random = np.random.RandomState([seed, self.number, index, place])
        return draw(random, self.dtypes[index], self.shape(index, place), self.values,
                    2.0 if self.op == 'Product' else 50.0)


def draw(random, dtype, shape, kind, limit):
    """Draws an array of the type. ``kind``: small numbers, numbers of the whole range (wide), or
    also special numbers such as NaN."""
    if dtype == 'bool':
        return np.asarray(random.randint(0, 2, shape) > 0)
    if dtype in INTEGERS:
        limits = np.iinfo(dtype)
        if kind == 'wide':
            raw = random.bytes(int(np.prod(shape, dtype=int)) * np.dtype(dtype).itemsize)
            return np.frombuffer(raw, dtype).reshape(shape).copy()
        return np.asarray(random.randint(max(-9, limits.min), 10, shape)).astype(dtype)
    values = np.asarray(rounded(random.uniform(-limit, limit, shape), dtype), np.float64)
    if kind == 'special' and values.size:
        places = random.randint(0, values.size, 3)
        values.reshape(-1)[places] = random.permutation([np.nan, np.inf, -np.inf, 0.0, -0.0])[:3]
    return values


class Drawer:
    """Draws the cases of a front end in a job with these process sets. ``sets``: lists of ranks;
    the first has all ranks."""

    def __init__(self, front, seed, sets):
        self._front = front
        self._seed = seed
        self._sets = sets

    def all(self):
        """Yields cases for each collective with each op and dtype of the front end, in the order of
        their numbers. Functions and compressions are drawn. A front end lists functions for one
        tensor and for a group alternately, so that each dtype gets both."""
        wanted = [each for kind in self._front.kinds for each in self._of_kind(kind)]
        for number, (kind, op, dtype) in enumerate(wanted):
            yield self._draw(number, kind, op, dtype)

    def _of_kind(self, kind):
        dtypes = self._front.dtypes(kind)
        taken = ('',) if kind not in REDUCTIONS else OPS if kind == 'allreduce' else OPS[:2]
        for op, dtype in itertools.product(taken, dtypes):
            yield from [(kind, op, dtype)] * self._front.repeats
        for op in OPS[2:] if taken == OPS[:2] else ():  # rejected for every dtype, so test one
            yield from [(kind, op, dtypes[self._seed % len(dtypes)])] * self._front.repeats

    def _draw(self, number, kind, op, dtype):
        random = np.random.RandomState([self._seed, number])

        def one_of(choices):
            return choices[random.randint(len(choices))]

        variants = self._front.variants[kind]
        variant, is_group = one_of(variants[number % 2::2] or variants)
        set_index = one_of([0, 0, random.randint(len(self._sets))])
        count = random.randint(1 + (kind == 'mixed'), 4) if is_group else 1
        case = Case(number, kind, op, is_group,
                    tuple(self._shape(kind, one_of, random) for _ in range(count)),
                    self._dtypes(kind, op, dtype, count, one_of),
                    tuple(self._sets[set_index]), set_index, variant,
                    layout=one_of(('plain', *self._front.layouts)),
                    values=one_of(('small', 'wide', 'special')))
        return self._completed(case, random, one_of)

    @staticmethod
    def _shape(kind, one_of, random):
        if random.randint(10) == 0:
            return _LARGE
        shapes = _SHAPES
        if kind in ('sparse', 'mixed'):
            shapes = [each for each in _SHAPES if each and 0 not in each[1:]]
        elif kind not in ('allreduce', 'broadcast') and random.randint(8):
            shapes = [each for each in _SHAPES if each]  # rarely a scalar, which is rejected
        return one_of(shapes)

    def _dtypes(self, kind, op, dtype, count, one_of):
        """Returns the dtypes of a group: ``dtype`` for the first tensor, and for the others any
        type that the op accepts."""
        likely = FLOATS if op == 'Adasum' else ALL if op != 'Average' else ALL[:-1]
        others = [each for each in self._front.dtypes(kind) if each in likely]
        return (dtype, *(one_of(others) for _ in range(count - 1)))

    def _completed(self, case, random, one_of):
        size = case.size()
        if case.kind in REDUCTIONS:
            factors = (1.0, 1.0, *_SCALES)
            scale = (one_of(factors), one_of(factors))
            if case.kind not in self._front.scaled:
                scale = (1.0, 1.0)
            return replace(case, scale=scale, rows=self._rows(case, random),
                           compression=self._compression(case, one_of))
        if case.kind == 'allgather':
            return replace(case, rows=self._rows(case, random))
        if case.kind == 'broadcast':
            return replace(case, root=int(one_of(case.ranks)))
        # Equal parts, without splits. An alltoall of scalars always has equal parts, because each
        # rank would reject splits by itself, before the ranks agree on the error.
        if random.randint(3) == 0 or () in case.shapes:
            return replace(case, rows=(int(size * random.randint(4)),) * size)
        splits = tuple(tuple(int(each) for each in random.randint(0, 4, size))
                       for _ in range(size))
        return replace(case, splits=splits, rows=tuple(sum(each) for each in splits))

    @staticmethod
    def _rows(case, random):
        if case.kind not in ('allgather', 'sparse', 'mixed'):
            return ()
        return tuple(int(each) for each in random.randint(0, 5, case.size()))

    def _compression(self, case, one_of):
        takes = self._front.compressions.get(case.variant, ('none',))
        return one_of(takes) if case.kind in ('allreduce', 'reducescatter') else 'none'


def as_carried(values, dtype):
    """Converts a result to the NumPy type of the expected arrays."""
    return np.asarray(values).astype(carrier(dtype), copy=False)
