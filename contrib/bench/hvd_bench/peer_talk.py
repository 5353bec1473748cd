# SPDX-License-Identifier: Apache-2.0
"""The child's side of the conversation with hvd-bench (peer_child.c): what torch's and Horovod's
children have in common. Both work on CPU tensors of torch."""

import ctypes
import os
import signal
import sys
import time

DTYPES = ('float16', 'bfloat16', 'float32', 'float64', 'int8', 'uint8', 'int16', 'int32', 'int64')


class No(Exception):
    """Cannot be done here; the text says why."""


class Wrong(Exception):
    """A result is not what it should be."""


def values(torch, count, rank):
    """Small whole numbers, different on each rank and at neighbouring places."""
    return (torch.arange(count) + 3 * rank) % 5


class Work:
    """One line of the table: an input, and an output of the size that the collective makes of it."""

    def __init__(self, torch, job, words):
        self.collective, dtype, self.op = words[:3]
        if self.collective in ('reduce', 'gather', 'scatter'):
            raise No(f'its {self.collective} is not measured')
        if dtype not in DTYPES:
            raise No(f'torch has no {dtype}')
        if self.op not in ('sum', 'average'):
            raise No('only sum and average')
        self.torch, self.job, self.dtype = torch, job, getattr(torch, dtype)
        count = int(words[3])
        self.input = torch.zeros(count, dtype=self.dtype)
        self.output = torch.zeros(self.output_count(count), dtype=self.dtype)

    def output_count(self, count):
        if self.collective == 'allgather':
            return count * self.job.size
        return count // self.job.size if self.collective == 'reducescatter' else count

    def fill(self):
        self.input.copy_(values(self.torch, len(self.input), self.job.rank))

    def expected(self):
        """The result, in float64."""
        torch, size, rank, count = self.torch, self.job.size, self.job.rank, len(self.input)
        ranks = [values(torch, count, other) for other in range(size)]
        if self.collective == 'broadcast':
            return ranks[0]
        if self.collective == 'allgather':
            return torch.cat(ranks)
        share = slice(rank * (count // size), (rank + 1) * (count // size))
        if self.collective == 'alltoall':
            return torch.cat([values_of[share] for values_of in ranks])
        total = sum(ranks).double()
        total = total / size if self.op == 'average' else total
        return total[share] if self.collective == 'reducescatter' else total

    def check(self, output):
        if self.collective == 'barrier':
            return
        expected = self.expected().to(self.dtype).double()
        if not self.torch.allclose(output.double(), expected, rtol=1e-2, atol=1e-6):
            raise Wrong(f'{self.collective} on rank {self.job.rank}')


class Job:
    """The words of `join`: where the ranks meet, and which rank this is."""

    def __init__(self, words):
        self.host = words[0]
        numbers = [int(word) for word in words[1:]]
        self.port, self.rank, self.size = numbers[:3]
        self.local_rank, self.local_size, self.cross_rank, self.cross_size = numbers[3:]


class Child:
    """Answers; a peer says how to serve(layout), join(job) and run(work) once."""

    def __init__(self, torch):
        self.torch, self.job, self.work = torch, None, None

    def answer(self, question, *words):
        if question == 'serve':
            return f'at {self.serve(words[0])}'
        if question == 'join':
            self.job = Job(words)
            self.join(self.job)
        elif question == 'work':
            self.work = Work(self.torch, self.job, words)
            self.prepare(self.work)
        elif question == 'check':
            self.work.fill()
            self.work.check(self.run(self.work))
        elif question == 'run':
            begin = time.perf_counter()
            for _ in range(int(words[0])):
                self.run(self.work)
            return repr(time.perf_counter() - begin)
        return 'ok'

    def prepare(self, work):
        """Raises No for what the peer does not do."""


def one_line(error):
    return ' '.join(str(error).split())[:200]


def die_with_parent():
    """Who is in a call does not see that nobody asks any more; the kernel then ends us."""
    pr_set_pdeathsig = 1
    ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)


def talk(make):
    """make() returns the Child. Whatever a library prints goes to the standard error."""
    die_with_parent()
    answers = os.fdopen(os.dup(1), 'w')
    os.dup2(2, 1)
    child = None
    for line in sys.stdin:
        try:
            child = child or make()
            said = child.answer(*line.split())
        except Wrong as error:
            said = f'wrong {one_line(error)}'
        except Exception as error:  # whatever it is, hvd-bench goes on without this peer
            said = f'no {type(error).__name__}: {one_line(error)}'
            if isinstance(error, No):
                said = f'no {one_line(error)}'
        print(said, file=answers, flush=True)
    answers.flush()
    os._exit(0)  # nobody waits for libraries that take leave of each other
