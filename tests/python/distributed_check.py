# SPDX-License-Identifier: Apache-2.0
"""hvdrun can start a script of torch.distributed that does not use hvd: DDP over Gloo, whose ranks
find each other by environment variables. Prints TAP; starts its ranks itself."""

import os

import launch
from report import run_check

SCRIPT = '''
import os, torch
import torch.distributed as dist
dist.init_process_group('gloo')
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(1, 1, bias=False))
model(torch.full((1, 1), 1. + dist.get_rank())).sum().backward()
print(f'rank {dist.get_rank()} of {dist.get_world_size()}, gradient {model.module.weight.grad.item()},',
      f'{torch.get_num_threads()} thread, port {os.environ["MASTER_PORT"]}', flush=True)
dist.barrier()
del model  # Gloo of torch 1.13 may hang at the end of Python that has one
dist.destroy_process_group()
'''


def check(report):
    for name in ('MASTER_ADDR', 'MASTER_PORT'):
        os.environ.pop(name, None)
    status, output = launch.run_ranks(2, ['-c', SCRIPT], GLOO_SOCKET_IFNAME='lo', RANK='0', WORLD_SIZE='1')
    report.line(status == 0, 'the script ends without an error', output)
    for rank in range(2):
        report.line(f'rank {rank} of 2, gradient 1.5, 1 thread, port ' in output,
                    f'rank {rank} is one of two ranks and gets the average of their gradients', output)


if __name__ == '__main__':
    run_check(check, 2, with_hvdrun=True)
