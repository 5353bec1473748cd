# SPDX-License-Identifier: Apache-2.0
"""The example for MXNet gives the same result on two ranks as on one, and scripts can end while
collectives are under way. Prints TAP; starts its ranks itself."""

import os

import launch
from digits import accurate, same_loss
from report import run_check
from training_check import train

SCRIPT = os.path.join(launch.HERE, '..', '..', 'contrib', 'examples', 'mxnet', 'train.py')

# Rank 0 ends without waiting for its collectives; the others read the results.
LEAVE = '''
import mxnet as mx, horovod.mxnet as hvd
hvd.init()
results = [hvd.allreduce(mx.nd.ones((100000,)), op=hvd.Sum) for _ in range(40)]
if hvd.rank() != 0:
    assert all((each.asnumpy() == hvd.size()).all() for each in results)
'''

# The last rank fails while the others wait for it, some of them only in the engine.
FAIL = '''
import mxnet as mx, horovod.mxnet as hvd
hvd.init()
if hvd.rank() == hvd.size() - 1:
    alone = hvd.allreduce(mx.nd.ones((9,)), name='alone')
    raise RuntimeError('this rank has had enough')
late = hvd.allreduce(mx.nd.ones((9,)), name='late')
'''


def same_curve(report, ones, twos):
    """Compares trainings in double precision with a global batch of 64 images: 64 on one rank, and
    32 on each of two ranks."""
    (one, text), (two, more) = ones, twos
    pairs = list(zip(one, two)) if len(one) == len(two) == 3 else []
    same_loss(report, 'two ranks have the loss of one rank with twice the batch size', pairs, 1e-9,
              text + more)


def ends(report):
    status, output = launch.run_ranks(4, ['-c', LEAVE])
    report.line(status == 0, 'a rank that ends first completes the collectives of the others', output)
    status, output = launch.run_ranks(2, ['-c', FAIL])
    report.line(status != 0 and 'had enough' in output,
                'an exception in one rank ends the job, even with collectives under way', output)


def check(report):
    directory = report.directory
    common = [SCRIPT, '--float64', '--epochs', '3', '--batch-size']
    curve_of_one, alone = train(1, directory, [*common, '64', '--lr', '0.1'], [SCRIPT])
    [curve] = train(2, directory, [*common, '32', '--lr', '0.05'])
    same_curve(report, curve_of_one, curve)
    accurate(report, '1 rank', *alone)
    half = '--fp16-allreduce'
    accurate(report, f'4 ranks {half}', *train(4, directory, [SCRIPT, half])[0])
    ends(report)


if __name__ == '__main__':
    run_check(check, 4, 'mxnet, sklearn')
