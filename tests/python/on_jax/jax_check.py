# SPDX-License-Identifier: Apache-2.0
"""The example for JAX gives the same result on two ranks as on one, and scripts can end while
compiled programs are under way, with and without an error. Prints TAP; starts its ranks itself."""

import os

import launch
from digits import accurate, same_loss
from report import run_check
from training_check import train

SCRIPT = os.path.join(launch.HERE, '..', '..', 'contrib', 'examples', 'jax', 'digits.py')

# Rank 0 ends without waiting for its programs; the others read the results.
LEAVE = '''
import jax, jax.numpy as jnp, horovod.jax as hvd
hvd.init()
reduce = jax.jit(lambda array: hvd.allreduce(array, op=hvd.Sum))
results = [reduce(jnp.ones(100000)) for _ in range(40)]
if hvd.rank() != 0:
    assert all((each == hvd.size()).all() for each in results)
'''

# Rank 1 ends by an exception while a program of its own waits in a collective. Rank 0 waits in another one, so no
# program can end before rank 1 has left the job. The product that takes long makes JAX run the program of rank 1 in
# the background. The first import makes hvd's function for the end of a script run after those of JAX.
FAIL = '''
import horovod.common.basics
import jax, jax.numpy as jnp, horovod.jax as hvd
hvd.init()
reduce = jax.jit(hvd.allreduce, static_argnames="name")
ready = reduce(jnp.ones((500, 500)), name="of rank 1").block_until_ready()
if hvd.rank() == 0:
    reduce(ready, name="of rank 0").block_until_ready()
late = jax.jit(lambda array: jax.lax.fori_loop(0, 100, lambda _, each: each @ ready / 500, array))(ready)
result = reduce(late, name="of rank 1")
raise RuntimeError("rank 1 has had enough")
'''

# Rank 1 dies, but with the exit code of a success, so that the launcher does not end rank 0.
DIE = '''
import os, jax, jax.numpy as jnp, horovod.jax as hvd
hvd.init()
hvd.initialize()
reduce = jax.jit(hvd.allreduce)
reduce(jnp.ones(9)).block_until_ready()
if hvd.rank() == 1:
    os._exit(0)
reduce(jnp.ones(9)).block_until_ready()
'''


def fails(report, promise, script, *reasons):
    """Reports whether the script fails on two ranks and gives the reasons."""
    status, output = launch.run_ranks(2, ['-c', script])
    report.line(status not in (0, 124) and all(reason in output for reason in reasons), promise,
                f'exit status {status}\n{output}')


def same_curve(report, ones, twos):
    """Compares trainings in double precision with a global batch of 64 images: 64 on one rank, and
    32 on each of two ranks."""
    (one, text), (two, more) = ones, twos
    pairs = list(zip(one, two)) if len(one) == len(two) == 3 else []
    same_loss(report, 'two ranks have the loss of one rank with twice the batch size', pairs, 1e-9,
              text + more)


def check(report):
    directory = report.directory
    common = [SCRIPT, '--float64', '--epochs', '3', '--batch-size']
    [curve_of_one] = train(1, directory, [*common, '64', '--lr', '0.1'])
    [curve] = train(2, directory, [*common, '32', '--lr', '0.05'])
    same_curve(report, curve_of_one, curve)
    half = '--fp16-allreduce'
    accurate(report, f'2 ranks {half}', *train(2, directory, [SCRIPT, half])[0])
    status, output = launch.run_ranks(2, ['-c', LEAVE])
    report.line(status == 0, 'a rank that ends first completes the collectives of the others', output)
    fails(report, 'an exception on one rank ends programs that wait in collectives', FAIL,
          'JaxRuntimeError', 'rank 1 on ', ': RuntimeError: rank 1 has had enough')
    fails(report, 'a rank does not wait for a dead one to leave JAX, too', DIE,
          'JaxRuntimeError', 'HorovodInternalError: rank 1 on ', 'the process exits without it')


if __name__ == '__main__':
    run_check(check, 2, 'jax, optax, sklearn')
