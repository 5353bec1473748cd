# SPDX-License-Identifier: Apache-2.0
"""torch.distributed with Gloo on CPU tensors, for hvd-bench --vs gloo: the child's side of the
protocol that peer_gloo.c describes.

    peer_gloo.py RANK SIZE NODES
"""

import ctypes
import datetime
import os
import signal
import sys
import time

import interface

RANK, SIZE, NODES = map(int, sys.argv[1:])
DTYPES = ('float16', 'bfloat16', 'float32', 'float64', 'int8', 'uint8', 'int16', 'int32', 'int64')
LIMIT = datetime.timedelta(seconds=60)


class No(Exception):
    """The work cannot be done here; the text says why."""


class Wrong(Exception):
    """A result is not what it should be."""


def store_of(torch, *arguments):
    """Returns a TCPStore without libuv: torch uses it from 2.4 on, but Debian's torch lacks it."""
    store = torch.distributed.TCPStore
    knows_libuv = 'use_libuv' in (store.__init__.__doc__ or '')
    return store(*arguments, **({'use_libuv': False} if knows_libuv else {}))


class Work:
    """A collective to measure, one line of the table, with its input and output."""

    def __init__(self, torch, collective, dtype, op, count):
        if collective in ('reduce', 'gather', 'scatter'):
            raise No(f'its {collective} is not measured')
        if dtype not in DTYPES:
            raise No(f'torch has no {dtype}')
        if collective == 'reducescatter':
            raise No('Gloo has no reducescatter in torch')
        if collective == 'allreduce' and op != 'sum':
            raise No(f'Gloo has no {op} in torch' if op == 'average' else 'only sum')
        self.torch, self.collective, self.count = torch, collective, int(count)
        self.dtype = getattr(torch, dtype)
        self.input = torch.zeros(self.count, dtype=self.dtype)
        self.output = torch.zeros(self.count * (SIZE if collective == 'allgather' else 1),
                                  dtype=self.dtype)

    def values(self, rank):
        """Returns small whole numbers that differ between ranks and between neighbouring elements."""
        return (self.torch.arange(self.count) + 3 * rank) % 5

    def run(self):
        dist = self.torch.distributed
        if self.collective == 'barrier':
            dist.barrier()
        elif self.collective == 'allgather':
            dist.all_gather(list(self.output.chunk(SIZE)), self.input)
        elif self.collective == 'alltoall':
            dist.all_to_all_single(self.output, self.input)
        else:
            self.output.copy_(self.input)  # torch reduces in place only
            if self.collective == 'broadcast':
                dist.broadcast(self.output, 0)
            else:
                dist.all_reduce(self.output)

    def check(self):
        self.input.copy_(self.values(RANK))
        self.run()
        ranks, torch = [self.values(rank) for rank in range(SIZE)], self.torch
        if self.collective == 'barrier':
            return
        if self.collective == 'allreduce':
            expected = sum(ranks)
        elif self.collective == 'allgather':
            expected = torch.cat(ranks)
        elif self.collective == 'broadcast':
            expected = ranks[0]
        else:
            share = self.count // SIZE
            expected = torch.cat([each[RANK * share:(RANK + 1) * share] for each in ranks])
        if not torch.allclose(self.output.double(), expected.to(self.dtype).double(), rtol=1e-2):
            raise Wrong(f'{self.collective} on rank {RANK}')


class Child:
    """Answers questions."""

    def __init__(self):
        os.environ.setdefault('OMP_NUM_THREADS', '1')
        if NODES == 1:
            os.environ.setdefault('GLOO_SOCKET_IFNAME', 'lo')
        self.address = '127.0.0.1' if NODES == 1 else interface.choose()
        import torch
        import torch.distributed
        self.torch, self.store, self.work = torch, None, None

    def answer(self, question, *words):
        if question == 'serve':
            self.store = store_of(self.torch, '0.0.0.0', 0, SIZE, True, LIMIT, False)
            return f'at {self.address} {self.store.port}'
        if question == 'join':
            self.store = self.store or store_of(self.torch, words[0], int(words[1]), SIZE, False,
                                                LIMIT)
            self.torch.distributed.init_process_group('gloo', store=self.store, rank=RANK,
                                                      world_size=SIZE, timeout=LIMIT)
        elif question == 'work':
            self.work = Work(self.torch, *words)
        elif question == 'check':
            self.work.check()
        elif question == 'run':
            begin = time.perf_counter()
            for _ in range(int(words[0])):
                self.work.run()
            return repr(time.perf_counter() - begin)
        return 'ok'


def main():
    """Answers requests on standard output; the output of libraries goes to standard error."""
    pr_set_pdeathsig = 1  # during a call, the child would not notice that its parent ended
    ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)
    answers = os.fdopen(os.dup(1), 'w')
    os.dup2(2, 1)
    child = None
    for line in sys.stdin:
        try:
            child = child or Child()
            said = child.answer(*line.split())
        except Exception as error:  # whatever the error is, hvd-bench goes on without this peer
            kind = {No: 'no ', Wrong: 'wrong '}.get(type(error), f'no {type(error).__name__}: ')
            said = kind + ' '.join(str(error).split())[:200]
        print(said, file=answers, flush=True)
    os._exit(0)  # ends without the clean-up of libraries, which may wait for other ranks


if __name__ == '__main__':
    main()
