# SPDX-License-Identifier: Apache-2.0
"""Horovod with Gloo, for hvd-bench --vs horovod=PYTHON."""

import os

from peer_talk import Child, No, talk


class Horovod(Child):
    def __init__(self):
        import torch
        import horovod.torch
        super().__init__(torch)
        self.hvd, self.server = horovod.torch, None

    def serve(self, layout):
        from horovod.runner.common.util.hosts import get_host_assignments, parse_hosts
        from horovod.runner.http.http_server import RendezvousServer
        ranks = [int(word) for word in layout.split(',')]
        hosts = parse_hosts(','.join(f'node{node}:{count}' for node, count in enumerate(ranks)))
        self.server = RendezvousServer()
        port = self.server.start()
        self.server.init(get_host_assignments(hosts, sum(ranks), sum(ranks)))
        return port

    def join(self, job):
        os.environ.update(
            HOROVOD_RANK=str(job.rank), HOROVOD_SIZE=str(job.size),
            HOROVOD_LOCAL_RANK=str(job.local_rank), HOROVOD_LOCAL_SIZE=str(job.local_size),
            HOROVOD_CROSS_RANK=str(job.cross_rank), HOROVOD_CROSS_SIZE=str(job.cross_size),
            HOROVOD_HOSTNAME=f'node{job.cross_rank}', HOROVOD_CONTROLLER='gloo',
            HOROVOD_CPU_OPERATIONS='gloo', HOROVOD_GLOO_RENDEZVOUS_ADDR=job.host,
            HOROVOD_GLOO_RENDEZVOUS_PORT=str(job.port),
            HOROVOD_GLOO_IFACE=os.environ.get('GLOO_SOCKET_IFNAME', 'lo'))
        self.hvd.init()

    def prepare(self, work):
        if work.collective in ('alltoall', 'reducescatter', 'barrier'):
            raise No(f'{work.collective} of Horovod is not measured')

    def run(self, work):
        """Returns the output."""
        hvd, name = self.hvd, 'hvd-bench'
        if work.collective == 'allgather':
            return hvd.synchronize(hvd.allgather_async(work.input, name=name))
        if work.collective == 'broadcast':
            return hvd.synchronize(hvd.broadcast_async(work.input, 0, name=name))
        op = hvd.Sum if work.op == 'sum' else hvd.Average
        return hvd.synchronize(hvd.allreduce_async(work.input, op=op, name=name))


if __name__ == '__main__':
    talk(Horovod)
