# SPDX-License-Identifier: Apache-2.0
"""Compares the collectives of horovod.mxnet with the reference."""

import mxnet as mx
import numpy as np

import horovod.mxnet as hvd
from horovod.common.exceptions import HorovodInternalError
from reference.arithmetic import FLOATS
from reference.check import Outcome, ReferenceTest, arguments

_DTYPES = ('uint8', 'int8', 'int32', 'int64', 'float16', 'float32', 'float64', 'bool')


def _tensor(values, dtype, layout):
    """Returns an array of MXNet; with the layout 'offset', a part of a longer array."""
    given = values.astype(dtype)
    if layout == 'offset' and given.ndim > 0:
        longer = np.concatenate([np.zeros((2, *given.shape[1:]), dtype), given])
        return mx.nd.array(longer, dtype=dtype)[2:]
    return mx.nd.array(given, dtype=dtype)


def _array(tensor):
    tensor.wait_to_read()  # asnumpy() does not wait for an empty array
    name = np.dtype(tensor.dtype).name
    values = tensor.asnumpy()
    return values.astype('float64') if name in FLOATS else values, name


class MXNet:
    """Describes horovod.mxnet for check.py."""

    name = f'mxnet {mx.__version__}'
    repeats = 2
    kinds = ('allreduce', 'reducescatter', 'allgather', 'broadcast', 'alltoall')
    variants = {
        'allreduce': [('allreduce', False), ('grouped_allreduce', True),
                      ('allreduce_', False), ('grouped_allreduce_', True)],
        'reducescatter': [('reducescatter', False), ('grouped_reducescatter', True)],
        'allgather': [('allgather', False), ('grouped_allgather', True)],
        'broadcast': [('broadcast', False), ('broadcast_', False)],
        'alltoall': [('alltoall', False)],
    }
    layouts = ('offset',)
    compressions = {}
    scaled = ('allreduce', 'reducescatter')
    errors = {
        'dtype': ValueError,
        'average of booleans': [ValueError],
        'Adasum of these ranks': [NotImplementedError],
        'Adasum of integers': [ValueError],
        'op of a reducescatter': [ValueError, HorovodInternalError],
        'no dimension': [ValueError, HorovodInternalError],
    }
    foreign = ('row_sparse', 'csr')

    def dtypes(self, kind):
        return _DTYPES

    def run(self, case, seed, process_set):
        place = case.ranks.index(hvd.rank())
        with mx.util.np_shape(True):  # otherwise 0 in a shape means "unknown"
            inputs = [_tensor(case.inputs(seed, index)[place], dtype, case.layout)
                      for index, dtype in enumerate(case.dtypes)]
            results = getattr(hvd, case.variant)(inputs if case.is_group else inputs[0],
                                                 **arguments(case, hvd, process_set, place))
            received = None
            if case.splits:
                results, received = results[0], results[1].asnumpy().tolist()
            results = results if case.is_group else [results]
            return Outcome([_array(each) for each in results],
                           [_array(each)[0] for each in inputs], received=received)

    def run_foreign(self, dtype):
        hvd.allreduce(mx.nd.ones((2, 2)).tostype(dtype))


class MXNetTest(ReferenceTest):
    front = MXNet()


del ReferenceTest  # unittest must not run the base class
