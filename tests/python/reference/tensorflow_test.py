# SPDX-License-Identifier: Apache-2.0
"""Compares the collectives of horovod.tensorflow, in eager mode and in tf.function, with the
reference."""

import tensorflow as tf

import horovod.tensorflow as hvd
from reference.arithmetic import ALL, FLOATS
from reference.check import Outcome, ReferenceTest, arguments
from reference.tensorflow_tensors import array, tensor


class TensorFlow:
    """Describes horovod.tensorflow for check.py. A function whose name begins with "graph" is
    called in tf.function."""

    name = f'tensorflow {tf.__version__}'
    repeats = 2
    kinds = ('allreduce', 'reducescatter', 'allgather', 'broadcast', 'alltoall', 'sparse',
             'mixed')
    variants = {
        'allreduce': [('allreduce', False), ('grouped_allreduce', True),
                      ('graph allreduce', False), ('graph grouped_allreduce', True)],
        'reducescatter': [('reducescatter', False), ('grouped_reducescatter', True),
                          ('graph reducescatter', False), ('graph grouped_reducescatter', True)],
        'allgather': [('allgather', False), ('grouped_allgather', True),
                      ('graph allgather', False), ('graph grouped_allgather', True)],
        'broadcast': [('broadcast', False), ('graph broadcast', False), ('broadcast_', False)],
        'alltoall': [('alltoall', False), ('graph alltoall', False)],
        'sparse': [('allreduce', False), ('grouped_allreduce', True),
                   ('graph allreduce', False), ('graph grouped_allreduce', True)],
        'mixed': [('grouped_allreduce', True), ('graph grouped_allreduce', True)],
    }
    layouts = ()
    compressions = {f'{where}{group}{name}': ('none', 'fp16', 'bf16')
                    for where in ('', 'graph ') for group in ('', 'grouped_')
                    for name in ('allreduce', 'reducescatter')}
    scaled = ('allreduce', 'reducescatter', 'sparse', 'mixed')
    errors = {
        'dtype': (TypeError, tf.errors.InvalidArgumentError),
        'average of booleans': [TypeError, tf.errors.InvalidArgumentError],
        'Adasum of these ranks': [NotImplementedError],
        'Adasum of integers': [tf.errors.InvalidArgumentError],
        'op of a reducescatter': [tf.errors.AbortedError],
        'op of a sparse tensor': [NotImplementedError],
        'no dimension': [tf.errors.FailedPreconditionError, tf.errors.UnknownError],
    }
    foreign = ('complex64', 'complex128')

    def dtypes(self, kind):
        return ALL

    def quotient_dtype(self, dtype):
        if dtype in FLOATS:
            return dtype
        return 'float32' if getattr(tf, dtype).size <= 2 else 'float64'

    def run(self, case, seed, process_set):
        place = case.ranks.index(hvd.rank())
        inputs = [self._input(case, seed, index, place) for index in range(len(case.dtypes))]
        name = case.variant.split()[-1]
        settings = arguments(case, hvd, process_set, place)
        if name == 'broadcast_':
            return self._broadcast_in_place(inputs[0], case.root, process_set)

        def call():
            return getattr(hvd, name)(inputs if case.is_group else inputs[0], **settings)

        if case.variant.startswith('graph'):
            call = tf.function(call)
            call()
            call()  # a node keeps the request of its second run and restarts it in later runs
        results = call()
        received = None
        if case.splits:
            results, received = results[0], results[1].numpy().tolist()
        return self._outcome(results if case.is_group else [results], inputs, received)

    @staticmethod
    def _input(case, seed, index, place):
        dtype = case.dtypes[index]
        values = tensor(case.inputs(seed, index)[place], dtype)
        if not case.is_sparse(index):
            return values
        return tf.IndexedSlices(values, tf.constant(case.indices(seed, index, place)),
                                tf.constant([4, *values.shape[1:]]))

    @staticmethod
    def _outcome(results, inputs, received):
        return Outcome(
            [array(getattr(each, 'values', each)) for each in results],
            [array(getattr(each, 'values', each))[0] for each in inputs],
            [each.indices.numpy() if isinstance(each, tf.IndexedSlices) else None
             for each in results], received)

    @staticmethod
    def _broadcast_in_place(values, root, process_set):
        variable = tf.Variable(values)
        hvd.broadcast_([variable], root, process_set=process_set)
        return Outcome([array(variable.value())], [array(variable.value())[0]])

    def run_foreign(self, dtype):
        hvd.allreduce(tf.zeros((2,), getattr(tf, dtype)))


class TensorFlowTest(ReferenceTest):
    front = TensorFlow()


del ReferenceTest  # unittest must not run the base class
