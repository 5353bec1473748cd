# SPDX-License-Identifier: Apache-2.0
"""As calls.py, of TensorFlow:

    hvdrun -np 2 python3 calls_tensorflow.py [--steps N] [--count N]

Rank 0 prints, of COUNT tensors of one element,

  eager        allreduce with the wait for the others, before the next tensor
  eager add    what TensorFlow itself takes for an operation: `add` in place of allreduce
  graph        a tf.function that allreduces all tensors, which need nothing of each other
  graph add    the same with `add`
"""

import argparse
import os

os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '2')

import horovod.tensorflow as hvd
import tensorflow as tf

from stopwatch import WARM_UP_STEPS, Stopwatch, print_figures


def reduce_each(tensors):
    return [hvd.allreduce(tensor, op=hvd.Sum, name=f'calls.{index}')
            for index, tensor in enumerate(tensors)]


def add_each(tensors):
    return [tf.add(tensor, tensor) for tensor in tensors]


def measure(count, steps):
    stopwatch = Stopwatch()
    tensors = [tf.zeros([1]) for _ in range(count)]
    ways = {'eager': reduce_each, 'eager add': add_each,
            'graph': tf.function(reduce_each), 'graph add': tf.function(add_each)}
    for _ in range(WARM_UP_STEPS + steps):
        for name, way in ways.items():
            hvd.allreduce(tensors[0], name='meet')
            stopwatch.restart()
            way(tensors)
            stopwatch.note(name)
    return stopwatch.all_figures(count)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--count', type=int, default=161)
    parser.add_argument('--steps', type=int, default=200)
    arguments = parser.parse_args()
    hvd.init()
    figures = measure(arguments.count, arguments.steps)
    if hvd.rank() == 0:
        print_figures(figures)
    hvd.shutdown()


if __name__ == '__main__':
    main()
