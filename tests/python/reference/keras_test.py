# SPDX-License-Identifier: Apache-2.0
"""Compares the functions of the Keras packages with the reference. HVD_TEST_KERAS names the
package, KERAS_BACKEND the backend of Keras 3."""

import importlib
import os

from horovod.common import basics
from horovod.common.exceptions import HorovodInternalError
from reference.arithmetic import ALL
from reference.check import Outcome, ReferenceTest

hvd = importlib.import_module(os.environ.get('HVD_TEST_KERAS', 'horovod.keras'))
ON_TORCH = 'torch' in hvd._engine.__name__
if ON_TORCH:
    import torch

    from reference.torch_tensors import MOVED_ONLY, array, tensor
else:
    import tensorflow as tf

    from reference.tensorflow_tensors import array, tensor


class Keras:
    """Describes horovod.keras or horovod.tensorflow.keras for check.py."""

    name = f'{hvd.__name__} on {"torch" if ON_TORCH else "tensorflow"}'
    repeats = 2
    kinds = ('allreduce', 'reducescatter', 'allgather', 'broadcast')
    variants = {kind: [(kind, False)] for kind in kinds}
    layouts = ()
    compressions = {'allreduce': ('none', 'fp16', 'bf16')}
    scaled = ('allreduce',)
    takes_sets = False
    errors = {
        'dtype': ValueError if ON_TORCH else (TypeError, tf.errors.InvalidArgumentError),
        'average of booleans': [ValueError if ON_TORCH else tf.errors.InvalidArgumentError],
        'Adasum of these ranks': [NotImplementedError],
        'Adasum of integers': [ValueError if ON_TORCH else tf.errors.InvalidArgumentError],
        'op of a reducescatter': [ValueError, HorovodInternalError] if ON_TORCH
        else [tf.errors.AbortedError],
        'no dimension': [HorovodInternalError if ON_TORCH else tf.errors.FailedPreconditionError],
    }
    foreign = ('complex64',)

    def dtypes(self, kind):
        if not ON_TORCH:
            return ALL
        return [name for name in ALL if hasattr(torch, name) and name not in MOVED_ONLY]

    def run(self, case, seed, process_set):
        mine = case.inputs(seed, 0)[case.ranks.index(basics.rank())]
        value = tensor(mine, case.dtypes[0]) if case.dtypes[0] == 'bfloat16' \
            else array(tensor(mine, case.dtypes[0]))[0].astype(case.dtypes[0])
        arguments = {}
        if case.op:
            arguments['op'] = getattr(basics, case.op)
        if case.kind == 'allreduce':
            arguments.update(prescale_factor=case.scale[0], postscale_factor=case.scale[1],
                             compression=getattr(hvd.Compression, case.compression))
        if case.kind == 'broadcast':
            arguments['root_rank'] = case.root
        result = getattr(hvd, case.variant)(value, **arguments)
        return Outcome([array(result)], [mine])

    def run_foreign(self, dtype):
        hvd.allreduce([1 + 2j])


class KerasTest(ReferenceTest):
    front = Keras()


del ReferenceTest  # unittest must not run the base class
