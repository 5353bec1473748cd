# SPDX-License-Identifier: Apache-2.0
"""The warning that each rank has trained alone: it comes at the end of a job that takes steps and averages nothing,
once, and in no other case. Prints TAP; starts its ranks itself."""

import re

import launch
from report import run_check

SCRIPT = '''
import torch
import horovod.torch as hvd
hvd.init()
model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
hvd.broadcast_parameters(model.state_dict(), root_rank=0)
{prepare}
for _ in range({steps}):
    optimizer.zero_grad()
    model(torch.ones(3, 2)).sum().backward()
    optimizer.step()
{end}
'''
WRAP = 'optimizer = hvd.DistributedOptimizer(optimizer, model.named_parameters())'
GLOO = 'import torch.distributed; torch.distributed.init_process_group("gloo")'
WARNING = re.compile(r'^\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{6}: W hvd rank 0\] this job of 2 ranks has averaged nothing, so '
                     r'each rank has trained alone: wrap the optimizer in hvd\.DistributedOptimizer', re.M)
HIDDEN = re.compile('^hvd: this job of 2 ranks has averaged nothing', re.M)
# Without a framework: the same steps are noted by hand.
BARE = '''
import horovod.common.basics as hvd
from horovod.common import alone
hvd.init()
alone.trained(lambda: False)
{end}
'''


def warned(script, ranks=2, expected=0, text=WARNING, **variables):
    """Returns how often the job has warned, or -1 and its output if it has another exit status."""
    status, output = launch.run_ranks(ranks, ['-c', script], **variables)
    return (len(text.findall(output)), output) if status == expected else (-1, output)


def check(report):
    def says(count, promise, script, **options):
        found, output = warned(script, **options)
        report.line(found == count, promise, output)

    says(1, 'a job that trains and averages nothing is told so, once', BARE.format(end=''))
    says(1, 'hvd.shutdown() does not hide it', BARE.format(end='hvd.shutdown()'))
    says(1, 'it comes without the time, as other log lines do', BARE.format(end=''), text=HIDDEN,
         HOROVOD_LOG_HIDE_TIME='1')
    says(0, 'and not at all in a log of errors alone', BARE.format(end=''), text=re.compile('averaged'),
         HOROVOD_LOG_LEVEL='error')
    says(0, 'a variable turns it off', BARE.format(end=''), HVD_CHECK_AVERAGING='0')
    says(0, 'a single rank trains alone by right', BARE.format(end=''), ranks=1)
    says(0, 'a job that fails has another problem', BARE.format(end='raise ValueError'), expected=1)
    values = {'prepare': '', 'steps': 2, 'end': ''}
    says(1, 'a script that forgets DistributedOptimizer is warned', SCRIPT.format(**values))
    says(0, 'a script that wraps its optimizer is not', SCRIPT.format(**{**values, 'prepare': WRAP}))
    says(0, 'nor one that averages by allreduce', SCRIPT.format(
        **{**values, 'end': 'hvd.allreduce(model.weight.detach())'}))
    says(0, 'nor one that takes no step', SCRIPT.format(**{**values, 'steps': 0}))
    says(0, 'nor one of torch.distributed', SCRIPT.format(**{**values, 'prepare': GLOO}))


if __name__ == '__main__':
    run_check(check, 2)
