# SPDX-License-Identifier: Apache-2.0
"""Optimizers that average gradients over the ranks, for Module and for gluon."""

import warnings

import mxnet as mx

from horovod.common.alike import StartCheck
from horovod.common.arguments import check_count, check_gradient_settings, wrong_type
from horovod.common.basics import Average
from horovod.common.process_sets import UNKNOWN_SET, global_process_set
from horovod.common.reductions import split_evenly
from horovod.mxnet.collectives import reduce_gradients
from horovod.mxnet.compression import Compression, prepare_all


class _Averaging:
    """Averages gradients in place and asynchronously, with the user's settings."""

    def __init__(self, compression, predivide_factor, num_groups, process_set):
        check_gradient_settings(Average, compression, predivide_factor, process_set)
        check_count('num_groups', num_groups, 0)
        if process_set.process_set_id is None:
            raise ValueError(UNKNOWN_SET)
        self._compression = compression
        self._num_groups = num_groups
        self._scale = (1.0 / predivide_factor, predivide_factor)
        self._process_set = process_set
        self._is_needed = process_set.included() and process_set.size() > 1
        self._start_check = StartCheck(process_set, 'hvd.broadcast_parameters(params, root_rank=0)')

    def compare(self, named):
        """Warns in the second step if the parameters of the ranks differed before the first one.
        ``named``: a list of (name, parameter), the same on all ranks."""
        if self._is_needed:
            self._start_check.step(lambda parameters: sum(map(_checksum, parameters)),
                                   lambda: dict(named))

    def run(self, named):
        """Averages gradients over the ranks. ``named``: a list of (name, gradient), with the same
        names in the same order on all ranks. Gradients at the front have a higher priority."""
        if not self._is_needed:
            return
        numbered = [(-position, *each) for position, each in enumerate(named)]
        groups = split_evenly(numbered, self._num_groups) or [(each,) for each in numbered]
        for group in groups:
            priorities, names, gradients = zip(*group)
            self._reduce(priorities[0], names, gradients)

    def _reduce(self, priority, names, gradients):
        compressed, wires, restores = prepare_all(self._compression, gradients, Average)
        name = names[0] if len(names) == 1 else f'{names[0]}:{names[-1]}'
        reduce_gradients(compressed, wires, name, Average, self._scale, priority,
                         self._process_set)
        for gradient, reduced, restore in zip(gradients, compressed, restores):
            if reduced is not gradient:
                gradient[:] = restore(reduced)


class DistributedOptimizer(mx.optimizer.Optimizer):
    """An optimizer that averages the gradients over all ranks before each update, for Module and
    for your own update loops. It has the attributes of the given optimizer.

    optimizer: an mx.optimizer.Optimizer.
    gradient_predivide_factor: splits the division of the average: the gradients are multiplied by
        1/f before the sum and by f/size after it, to avoid overflow.
    num_groups: the number of groups in which the gradients of one update are reduced; 0: each
        gradient alone.
    process_set: the ranks that share gradients; on other ranks nothing is averaged.
    """

    def __init__(self, optimizer, gradient_predivide_factor=1.0, num_groups=0,
                 process_set=global_process_set):
        if isinstance(optimizer, DistributedOptimizer):
            raise ValueError('the optimizer is a DistributedOptimizer already')
        if not isinstance(optimizer, mx.optimizer.Optimizer):
            raise wrong_type('optimizer', optimizer, 'an mx.optimizer.Optimizer')
        averaging = _Averaging(Compression.none, gradient_predivide_factor, num_groups,
                               process_set)
        vars(self).update(_optimizer=optimizer, _averaging=averaging)

    def __getattr__(self, name):
        if name in ('_optimizer', '_averaging'):  # a copy under construction lacks them
            raise AttributeError(name)
        return getattr(self._optimizer, name)

    def __setattr__(self, name, value):
        setattr(self._optimizer, name, value)

    def __getstate__(self):
        return dict(vars(self))

    def __setstate__(self, state):
        vars(self).update(state)

    def _average(self, index, grad):
        if isinstance(index, (tuple, list)):
            self._averaging.run([(str(each), gradient) for each, gradient in zip(index, grad)])
        else:
            self._averaging.run([(str(index), grad)])

    def create_state(self, index, weight):
        return self._optimizer.create_state(index, weight)

    def create_state_multi_precision(self, index, weight):
        return self._optimizer.create_state_multi_precision(index, weight)

    def update(self, index, weight, grad, state):
        self._average(index, grad)
        self._optimizer.update(index, weight, grad, state)

    def update_multi_precision(self, index, weight, grad, state):
        self._average(index, grad)
        self._optimizer.update_multi_precision(index, weight, grad, state)

    def set_learning_rate(self, lr):
        self._optimizer.set_learning_rate(lr)

    def set_lr_mult(self, args_lr_mult):
        self._optimizer.set_lr_mult(args_lr_mult)

    def set_wd_mult(self, args_wd_mult):
        self._optimizer.set_wd_mult(args_wd_mult)


class DistributedTrainer(mx.gluon.Trainer):
    """A gluon Trainer that averages the gradients over all ranks, in ``step`` and
    ``allreduce_grads``.

    params, optimizer, optimizer_params: as for mx.gluon.Trainer.
    compression: a member of hvd.Compression: the type in which gradients travel between ranks.
    prefix: a string to put before the names of gradients; needed if a script has several trainers.
    gradient_predivide_factor, num_groups, process_set: as for DistributedOptimizer.
    """

    def __init__(self, params, optimizer, optimizer_params=None, compression=Compression.none,
                 gradient_predivide_factor=1.0, prefix=None, num_groups=0,
                 process_set=global_process_set):
        if isinstance(optimizer, DistributedOptimizer):
            optimizer = optimizer._optimizer
            warnings.warn('DistributedTrainer does not take DistributedOptimizer as its '
                          'optimizer. We have unwrapped it for you.', stacklevel=2)
        if not (prefix is None or isinstance(prefix, str)):
            raise ValueError(f'prefix must be a string, not {prefix!r}')
        self._averaging = _Averaging(compression, gradient_predivide_factor, num_groups,
                                     process_set)
        self._prefix = prefix or ''
        super().__init__(params, optimizer, optimizer_params=optimizer_params, kvstore=None)

    def _allreduce_grads(self):
        named = [(f'{self._prefix}{index}', parameter)
                 for index, parameter in enumerate(self._params) if parameter.grad_req != 'null']
        self._averaging.compare(named)
        self._averaging.run([(name, _gradient(parameter)) for name, parameter in named])


def _gradient(parameter):
    gradients = parameter.list_grad()
    if len(gradients) > 1:
        raise ValueError(f'Parameter {parameter.name} is on {len(gradients)} devices: a rank of '
                         'hvd trains on one; start a rank for each device')
    return gradients[0]


def _checksum(parameter):
    """Returns the sum of the bits of the parameter's last row, an integer. One row is enough,
    because initial values differ everywhere. Sparse parameters are left out."""
    array = parameter.list_data()[0]
    if array.stype != 'default' or array.size == 0:
        return 0
    while array.ndim > 1:
        array = array[-1]
    row = array.asnumpy().reshape(-1)
    return int(row.view(f'i{row.itemsize}').sum(dtype='int64'))
