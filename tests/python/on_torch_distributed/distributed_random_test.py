# SPDX-License-Identifier: Apache-2.0
"""Random programs of torch.distributed's calls give the same results with the backend hvd as with
Gloo.

In a program several threads make calls, each with groups of its own. Calls of hvd overlap: each
rank chooses whether it waits for a call at once, later, in another order, with a future or by
polling. Calls of Gloo run one after the other, on dense tensors, because Gloo supports no others.

HVD_TEST_SEED repeats a run. HVD_TEST_SECONDS is how long to run programs; default 10."""

import os
import random
import threading
import time
import traceback
from datetime import timedelta

import torch
import torch.distributed as dist

from distributed_case import (IS_ALONE, VERSION, Case, gather_into_one, gloo_group, scatter_from_one,
                              wait_until)
from inputs import values
from tap import note

SECONDS = float(os.environ.get('HVD_TEST_SECONDS', 10))
THREADS = 3
STEPS = 40  # calls of a thread in a program
MOST_UNDER_WAY = 24  # more calls than run at once: _AT_ONCE of horovod/torch/distributed/calls.py
TIMEOUT = timedelta(seconds=120)

DTYPES = [torch.float32, torch.float64, torch.float16, torch.int8, torch.uint8, torch.int32, torch.int64]
SIZES = [0, 1, 2, 3, 5] if VERSION >= (2, 0) else [1, 2, 3, 5]  # older versions of Gloo divide by 0
GLOO_SCATTERS = VERSION >= (2, 14)  # Gloo has reduce_scatter and all_to_all of lists


def dense(tensor):
    return tensor.clone()


def spread(tensor):
    """Returns the same numbers with gaps between all elements in memory."""
    whole = torch.full((*tensor.shape, 2), 77).to(tensor.dtype)
    whole[..., 0] = tensor
    return whole[..., 0]


def transposed(tensor):
    if tensor.dim() < 2:
        return spread(tensor)
    return tensor.transpose(0, -1).contiguous().transpose(0, -1)


LAYOUTS = [dense, spread, transposed]


class Step:
    """A call, the same on all ranks except for the values of tensors."""

    def __init__(self, chance, number, size):
        self.name = chance.choice([name for name in dir(self) if name.startswith('call_')])
        self.number = number
        self.dtype = chance.choice(DTYPES)
        dims = chance.choice([0, 1, 1, 1, 2, 2, 3])
        self.shape = tuple(chance.choice(SIZES) for _ in range(dims))
        if chance.random() < 0.05:
            self.shape = (chance.choice([5000, 70001]),)
        self.op = chance.choice(['SUM', 'SUM', 'MIN', 'MAX', 'PRODUCT'])
        self.root = chance.randrange(size)
        self.layout = chance.choice(LAYOUTS)
        self.nests = chance.random() < 0.1
        self.splits = [[chance.randrange(4) for _ in range(size)] for _ in range(size)]

    def __str__(self):
        return (f'{self.number}. {self.name[5:]} {self.op} of {self.dtype} {self.shape} '
                f'{self.layout.__name__} root {self.root} splits {self.splits}')

    def run(self, group, layout, is_async):
        """Makes the call. Returns the work (or None) and the tensors that receive the result."""
        self.group, self.lay, self.named = group, layout, {'group': group, 'async_op': is_async}
        self.rank, self.size = dist.get_rank(group), dist.get_world_size(group)
        self.job_root = RANKS[group][self.root]
        return getattr(self, self.name)()

    def mine(self, shape=None, salt=0):
        shape = self.shape if shape is None else shape
        return self.lay(values(self.rank, shape, self.dtype, 10 * self.number + salt))

    def room(self, shape=None):
        return self.lay(torch.full(self.shape if shape is None else shape, 9).to(self.dtype))

    def reduction(self):
        return getattr(dist.ReduceOp, self.op)

    def call_all_reduce(self):
        tensor = self.mine()
        return dist.all_reduce(tensor, self.reduction(), **self.named), [tensor]

    def call_reduce(self):
        tensor = self.mine()
        work = dist.reduce(tensor, self.job_root, self.reduction(), **self.named)
        return work, [tensor] if self.rank == self.root else []

    def call_broadcast(self):
        tensor = self.mine()
        return dist.broadcast(tensor, self.job_root, **self.named), [tensor]

    def call_all_gather(self):
        outputs = [self.room() for _ in range(self.size)]
        return dist.all_gather(outputs, self.mine(), **self.named), outputs

    def call_all_gather_into_one(self):
        if self.is_gloo() and VERSION < (2, 0):
            outputs = [self.room((1, *self.shape)) for _ in range(self.size)]
            work = dist.all_gather(outputs, self.mine((1, *self.shape)), **self.named)
            return work, [torch.cat(outputs)]
        output = self.room((self.size, *self.shape))
        return gather_into_one(output, self.mine((1, *self.shape)), **self.named), [output]

    def is_gloo(self):
        return dist.get_backend(self.group) == 'gloo'

    def call_gather(self):
        outputs = [self.room() for _ in range(self.size)] if self.rank == self.root else None
        return dist.gather(self.mine(), outputs, self.job_root, **self.named), outputs or []

    def call_scatter(self):
        inputs = [self.mine(salt=to) for to in range(self.size)] if self.rank == self.root else None
        output = self.room()
        return dist.scatter(output, inputs, self.job_root, **self.named), [output]

    def call_reduce_scatter(self):
        inputs = [self.mine(salt=to) for to in range(self.size)]
        if self.is_gloo() and not GLOO_SCATTERS:
            for each in inputs:
                dist.all_reduce(each, self.reduction(), self.group)
            return None, [inputs[self.rank]]
        output = self.room()
        return dist.reduce_scatter(output, inputs, self.reduction(), **self.named), [output]

    def call_reduce_scatter_from_one(self):
        whole = self.mine((self.size, *self.shape))
        if self.is_gloo() and not GLOO_SCATTERS:
            dist.all_reduce(whole, self.reduction(), self.group)
            return None, [whole[self.rank:self.rank + 1]]
        output = self.room((1, *self.shape))
        return scatter_from_one(output, whole, self.reduction(), **self.named), [output]

    def call_all_to_all_single(self):
        sent, received = self.splits[self.rank], [row[self.rank] for row in self.splits]
        output = self.room((sum(received), *self.shape[1:]))
        work = dist.all_to_all_single(output, self.mine((sum(sent), *self.shape[1:])), received, sent,
                                      **self.named)
        return work, [output]

    def call_all_to_all_single_evenly(self):
        output = self.room((self.size, *self.shape))
        return dist.all_to_all_single(output, self.mine((self.size, *self.shape)), **self.named), [output]

    def call_message(self):
        """Sends a message to the next rank, and receives one from the previous rank."""
        output, before = self.room(), (self.rank - 1) % self.size
        ranks = RANKS[self.group]
        if self.size == 1:
            return None, []
        if self.is_gloo():  # the result is known without a message
            return None, [values(before, self.shape, self.dtype, 10 * self.number)]
        self.sent = self.mine()
        sending = dist.isend(self.sent, ranks[(self.rank + 1) % self.size], self.group, self.number)
        receiving = dist.irecv(output, ranks[before], self.group, self.number)
        if not self.named['async_op']:
            sending.wait()
            receiving.wait()
            return None, [output]
        return receiving, [output]


RANKS = {}  # {group: its ranks in the job}


class Player:
    """Makes the calls of one thread of a program."""

    def __init__(self, seed, rank, hvd, gloo):
        self.hvd, self.gloo = hvd, gloo
        chance = random.Random(seed)
        self.steps = [Step(chance, number, len(RANKS[hvd])) for number in range(STEPS)]
        self.chance = random.Random(f'{seed} {rank}')  # different on each rank
        self.under_way = []
        self.failure = None

    def play(self):
        try:
            for self.step in self.steps:
                self.make(self.step)
                while len(self.under_way) > self.chance.randrange(MOST_UNDER_WAY):
                    self.finish()
            while self.under_way:
                self.finish()
        except BaseException:
            self.failure = f'{self.step}\n{traceback.format_exc()}'

    def make(self, step):
        _, expected = step.run(self.gloo, dense, False)
        is_async = step.nests or self.chance.random() < 0.7
        work, results = step.run(self.hvd, step.layout, is_async)
        waits = self.way_to_wait(step, work)
        self.under_way.append((step, waits, results, expected))
        if not is_async:
            self.finish(-1)

    def way_to_wait(self, step, work):
        if work is None:
            return lambda: None
        if step.nests:
            return self.follow(work.get_future().then(self.again))
        way = self.chance.choice(['wait', 'ask', 'future', 'callback', 'both', 'thread'])
        if way == 'ask' and IS_ALONE:
            return lambda: wait_until(work.is_completed, 'the end of a call')
        if way == 'future':
            return self.follow(work.get_future())
        if way == 'callback':
            return self.follow(work.get_future().then(lambda future: future.value()))
        if way == 'both':
            future = work.get_future()
            return lambda: (work.wait(), future.wait())
        if way == 'thread':
            thread = threading.Thread(target=work.wait)
            thread.start()
            return thread.join
        return work.wait

    @staticmethod
    def follow(future):
        def wait():
            wait_until(future.done, 'the end of a future')
            future.wait()

        return wait

    def again(self, future):
        """A callback of a future. It makes a call, with a shape that no other call has, and waits
        for its result."""
        ones = torch.ones(97)
        total = dist.all_reduce(ones, group=self.hvd, async_op=True).get_future().wait()[0]
        assert total.tolist() == [len(RANKS[self.hvd])] * 97, total

    def finish(self, index=None):
        index = self.chance.randrange(len(self.under_way)) if index is None else index
        self.step, wait, results, expected = self.under_way.pop(index)
        wait()
        assert len(results) == len(expected)
        for result, wanted in zip(results, expected):
            assert result.dtype == wanted.dtype and result.shape == wanted.shape
            assert torch.equal(result, wanted), f'{result} over hvd, {wanted} over Gloo'


class Programs(Case):

    def group_pairs(self, chance):
        """Returns for each thread two groups of the same ranks, one of hvd and one of Gloo, or None
        if this rank is not a member."""
        pairs = []
        for _ in range(THREADS):
            ranks = sorted(chance.sample(range(self.size), chance.randrange(1, self.size + 1)))
            pair = [dist.new_group(ranks, TIMEOUT, 'hvd'), gloo_group(ranks, TIMEOUT)]
            if self.rank in ranks:
                RANKS.update((group, ranks) for group in pair)
            pairs.append(pair if self.rank in ranks else None)
        return pairs

    def agree(self, number):
        """Returns the number of rank 0 on all ranks."""
        tensor = torch.tensor([number])
        dist.broadcast(tensor, 0)
        return tensor.item()

    def test_random_programs_give_what_they_give_over_gloo(self):
        seed = self.agree(int(os.environ.get('HVD_TEST_SEED', random.randrange(10 ** 9))))
        until, programs = time.monotonic() + SECONDS, 0
        pairs = self.group_pairs(random.Random(seed))
        while programs == 0 or self.agree(time.monotonic() < until):
            players = [Player(f'{seed} {programs} {index}', self.rank, *pair)
                       for index, pair in enumerate(pairs) if pair is not None]
            threads = [threading.Thread(target=each.play, daemon=True) for each in players]
            for each in threads:
                each.start()
            for each in threads:
                each.join()
            failures = [each.failure for each in players if each.failure]
            self.assertEqual(failures, [], f'HVD_TEST_SEED={seed}, program {programs}:\n'
                             + '\n'.join(failures))
            programs += 1
        if self.rank == 0:
            note(f'{programs} programs of {THREADS} threads and {STEPS} calls each, HVD_TEST_SEED={seed}')
