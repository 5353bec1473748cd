# SPDX-License-Identifier: Apache-2.0
"""Collectives of the Keras packages on numbers, lists and NumPy arrays."""

import numpy
from keras_case import Case, hvd, to_numpy


class Values(Case):
    def test_allreduce_averages_arrays_and_numbers(self):
        mean = (hvd.size() - 1) / 2
        result = to_numpy(hvd.allreduce(numpy.array([hvd.rank(), 1], 'float64'), name='both'))
        self.assertEqual(result.dtype, numpy.float64)
        self.check(result, [mean, 1])
        self.check(hvd.allreduce(float(hvd.rank())), mean)
        self.check(hvd.allreduce([hvd.rank() + 0.5]), [mean + 0.5])

    def test_allreduce_takes_op_factors_and_compression(self):
        self.check(hvd.allreduce(numpy.array([2.]), op=hvd.Sum, prescale_factor=3.0,
                                 postscale_factor=0.5), [3 * hvd.size()])
        for compression in (hvd.Compression.none, hvd.Compression.fp16):
            self.check(hvd.allreduce(numpy.array([1.5], 'float32'), compression=compression),
                       [1.5])
        self.check(hvd.allreduce(numpy.array([1.0]), average=False), [hvd.size()])
        with self.assertRaisesRegex(ValueError, 'supersedes average'):
            hvd.allreduce(numpy.array([1.0]), average=True, op=hvd.Sum)

    def test_reducescatter_gives_each_rank_its_part(self):
        rows = numpy.arange(2 * hvd.size(), dtype='float32').reshape(-1, 1)
        own = rows[2 * hvd.rank():2 * hvd.rank() + 2]
        self.check(hvd.reducescatter(rows), own)
        self.check(hvd.reducescatter(rows, op=hvd.Average), own)
        self.check(hvd.reducescatter(rows, op=hvd.Sum), own * hvd.size())

    def test_broadcast_global_variables_is_for_graphs(self):
        with self.assertRaisesRegex(RuntimeError, 'broadcast_global_variables'):
            hvd.broadcast_global_variables(0)
