# SPDX-License-Identifier: Apache-2.0
"""torch.distributed with Gloo, for hvd-bench --vs gloo."""

import datetime

from peer_talk import Child, No, talk


class Torch(Child):
    def __init__(self):
        import torch
        import torch.distributed
        super().__init__(torch)
        self.dist, self.store = torch.distributed, None
        self.limit = datetime.timedelta(seconds=60)

    def serve(self, layout):
        ranks = sum(map(int, layout.split(',')))
        self.store = self.meet('0.0.0.0', 0, ranks, True, self.limit, False)
        return self.store.port

    def meet(self, *arguments):
        """From 2.4 on torch wants libuv here, which Debian's torch is built without."""
        store = self.dist.TCPStore
        knows_libuv = 'use_libuv' in (store.__init__.__doc__ or '')
        return store(*arguments, **({'use_libuv': False} if knows_libuv else {}))

    def join(self, job):
        if self.store is None:
            self.store = self.meet(job.host, job.port, job.size, False, self.limit)
        self.dist.init_process_group('gloo', store=self.store, rank=job.rank,
                                     world_size=job.size, timeout=self.limit)

    def prepare(self, work):
        if work.collective == 'reducescatter':
            raise No('Gloo has no reducescatter in torch')
        if work.op != 'sum' and work.collective == 'allreduce':
            raise No('Gloo has no average in torch')

    def run(self, work):
        """Returns the output."""
        if work.collective == 'barrier':
            self.dist.barrier()
            return None
        self.start(work.collective, work.input, work.output).wait()
        return work.output

    def start(self, collective, tensor, output):
        if collective == 'allgather':
            parts = list(output.chunk(self.job.size))
            return self.dist.all_gather(parts, tensor, async_op=True)
        if collective == 'alltoall':
            return self.dist.all_to_all_single(output, tensor, async_op=True)
        output.copy_(tensor)  # torch reduces in place only
        if collective == 'broadcast':
            return self.dist.broadcast(output, 0, async_op=True)
        return self.dist.all_reduce(output, async_op=True)


if __name__ == '__main__':
    talk(Torch)
