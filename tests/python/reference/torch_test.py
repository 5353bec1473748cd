# SPDX-License-Identifier: Apache-2.0
"""Compares the collectives of horovod.torch with the reference."""

import torch

import horovod.torch as hvd
from horovod.common.exceptions import HorovodInternalError
from reference.arithmetic import ALL, FLOATS
from reference.check import Outcome, ReferenceTest, arguments
from reference.torch_tensors import MOVED_ONLY, array, tensor

class Torch:
    """Describes horovod.torch for check.py."""

    name = f'torch {torch.__version__}'
    repeats = 2
    kinds = ('allreduce', 'reducescatter', 'allgather', 'broadcast', 'alltoall', 'sparse')
    variants = {
        'allreduce': [('allreduce', False), ('grouped_allreduce', True),
                      ('allreduce_', False), ('grouped_allreduce_', True),
                      ('allreduce_async', False), ('grouped_allreduce_async', True),
                      ('allreduce_async_', False), ('grouped_allreduce_async_', True)],
        'reducescatter': [('reducescatter', False), ('grouped_reducescatter', True),
                          ('reducescatter_async', False), ('grouped_reducescatter_async', True)],
        'allgather': [('allgather', False), ('grouped_allgather', True),
                      ('allgather_async', False), ('grouped_allgather_async', True)],
        'broadcast': [('broadcast', False), ('broadcast_', False), ('broadcast_async', False),
                      ('broadcast_async_', False)],
        'alltoall': [('alltoall', False), ('alltoall_async', False)],
        'sparse': [('sparse_allreduce_async', False)],
    }
    layouts = ('transposed', 'strided', 'offset')
    compressions = {name: ('none', 'fp16', 'bf16') for name in (
        'allreduce', 'grouped_allreduce', 'reducescatter', 'grouped_reducescatter')}
    scaled = ('allreduce', 'reducescatter')
    errors = {
        'dtype': ValueError,
        'average of booleans': [ValueError],
        'Adasum of these ranks': [NotImplementedError],
        'Adasum of integers': [ValueError],
        'op of a reducescatter': [ValueError, HorovodInternalError],
        'op of a sparse tensor': [ValueError],
        'no dimension': [HorovodInternalError],
    }
    foreign = ('complex64', 'complex128')

    def dtypes(self, kind):
        names = [name for name in ALL if hasattr(torch, name)]
        return [name for name in names if name not in MOVED_ONLY] if kind == 'sparse' else names

    def quotient_dtype(self, dtype):
        return dtype if dtype in FLOATS else 'float32'

    def run(self, case, seed, process_set):
        place = case.ranks.index(hvd.rank())
        inputs = [tensor(case.inputs(seed, index)[place], dtype, case.layout)
                  for index, dtype in enumerate(case.dtypes)]
        if case.kind == 'sparse':
            return self._run_sparse(case, seed, place, inputs[0], process_set)
        given = inputs if case.is_group else inputs[0]
        results = getattr(hvd, case.variant)(given, **arguments(case, hvd, process_set, place))
        if 'async' in case.variant:
            results = hvd.synchronize(results)
        received = None
        if case.kind == 'alltoall' and isinstance(results, tuple):
            results, received = results[0], results[1].tolist()
        results = results if case.is_group else [results]
        return Outcome([array(each) for each in results],
                       [array(each)[0] for each in inputs], received=received)

    @staticmethod
    def _run_sparse(case, seed, place, values, process_set):
        indices = torch.from_numpy(case.indices(seed, 0, place)).view(1, -1)
        sparse = torch.sparse_coo_tensor(indices, values, (4, *values.shape[1:]))
        result = hvd.sparse_allreduce_async(sparse, None, getattr(hvd, case.op), process_set)()
        return Outcome([array(result._values())], [None], [result._indices()[0].numpy()])

    def run_foreign(self, dtype):
        hvd.allreduce(torch.zeros(2, dtype=getattr(torch, dtype)))


class TorchTest(ReferenceTest):
    front = Torch()


del ReferenceTest  # unittest must not run the base class
