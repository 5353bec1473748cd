# SPDX-License-Identifier: Apache-2.0
"""DistributedOptimizer: averages gradients over the ranks while backward still computes."""

import contextlib
import warnings

import torch

from horovod.common.arguments import check_count, check_gradient_settings, wrong_type
from horovod.common.basics import Adasum, Average
from horovod.common.elastic import is_elastic
from horovod.common.process_sets import UNKNOWN_SET, global_process_set, is_registered
from horovod.torch.adasum_optimizer import AdasumOptimizer
from horovod.torch.adasum_optimizer import AdasumOptimizer as _DistributedAdasumOptimizer
from horovod.torch.compression import Compression
from horovod.torch.dynamo import keep_out
from horovod.torch.exchange import GradientExchange
from horovod.torch.grad_scaler import teach_scalers
from horovod.torch.gradients import Reduction
from horovod.torch.parameters import all_names, make_groups, name_parameters


class _DistributedOptimizer(torch.optim.Optimizer):
    """What DistributedOptimizer adds to the class of the user's optimizer.

    ``_exchange`` is None where there is no other rank to exchange gradients with.
    """

    def _distribute(self, exchange, passes):
        self._exchange = exchange
        self.backward_passes_per_step = passes
        self._synchronized = False
        self._is_unscaled = False
        self._should_synchronize = True
        if exchange is not None:
            exchange.watch(self.param_groups)

    def set_backward_passes_per_step(self, passes):
        """Changes the number of backward passes in a step. Call it between two steps."""
        self.backward_passes_per_step = passes
        if self._exchange is not None:
            self._exchange.restart(passes)

    def synchronize(self):
        """Waits until every gradient is reduced. For scripts that change gradients before the step,
        which they then take within ``skip_synchronize``."""
        if self._exchange is not None:
            self._exchange.synchronize(self.param_groups)
        self._synchronized = True

    @contextlib.contextmanager
    def skip_synchronize(self):
        """A context in which ``step`` does not wait for gradients."""
        self._should_synchronize = False
        try:
            yield
        finally:
            self._should_synchronize = True

    def _unscale_together(self, unscale):
        """Lets a GradScaler check the reduced gradients, so that all ranks take the step or all
        skip it."""
        if self._exchange is not None and not (
                (self._synchronized or self._is_unscaled) and self._exchange.is_idle()):
            self._exchange.synchronize(self.param_groups)
            self._is_unscaled = True
        return unscale()

    def step(self, closure=None):
        """Takes the step with reduced gradients. If there is a closure that computes them,
        ``synchronize`` follows each of its calls."""
        if self._should_synchronize and not (self._is_unscaled and self._exchange.is_idle()):
            if self._synchronized:
                warnings.warn(
                    'optimizer.step() called without optimizer.skip_synchronize() context after '
                    'optimizer.synchronize(). This can cause training slowdown. You may want to '
                    'consider using optimizer.skip_synchronize() context if you use '
                    'optimizer.synchronize() in your code.', stacklevel=2)
            if closure is None:
                self.synchronize()
            else:
                closure = self._synchronizing(closure)
        self._synchronized = self._is_unscaled = False
        result = super().step() if closure is None else super().step(closure)
        self._synchronized = False
        return result

    # torch wraps a step function without this mark to run its hooks; the base's step has them.
    step.hooked = True

    def _synchronizing(self, closure):
        def compute():
            loss = closure()
            self.synchronize()
            if self._exchange is not None and isinstance(self, torch.optim.LBFGS):
                return self._exchange.agree_on(loss)  # it decides by it when to stop
            return loss

        return compute

    def zero_grad(self, *args, **kwargs):
        """As in the base class, but refused while gradients are being reduced."""
        if self._exchange is not None and not self._exchange.is_idle():
            raise AssertionError(
                'optimizer.zero_grad() was called after loss.backward() but before '
                'optimizer.step() or optimizer.synchronize(). This is prohibited as it can '
                'cause a race condition.')
        self._is_unscaled = False
        return super().zero_grad(*args, **kwargs)

    def load_state_dict(self, *args, **kwargs):
        """As in the base class; also forgets the passes counted so far."""
        self.set_backward_passes_per_step(self.backward_passes_per_step)
        self._synchronized = self._is_unscaled = False
        return super().load_state_dict(*args, **kwargs)


def DistributedOptimizer(optimizer, named_parameters=None, compression=Compression.none,
                         backward_passes_per_step=1, op=Average, gradient_predivide_factor=1.0,
                         num_groups=0, groups=None, sparse_as_dense=False,
                         process_set=global_process_set):
    """The optimizer with gradients that are reduced over all ranks before each step.

    The result is of the optimizer's own class too and shares its state and hyperparameters.
    Reduction of a gradient starts as soon as backward has completed it
    ``backward_passes_per_step`` times.

    named_parameters: ``model.named_parameters()``; the ranks match gradients by these names.
    compression: a member of hvd.Compression, for the way between ranks.
    op: Average, Sum, Min, Max or Product of gradients; or Adasum of the steps that the ranks
        take with their own gradients, on a power of two of ranks.
    gradient_predivide_factor: splits Average's division: 1/f before the sum, f/size after it.
    groups: a number of groups, or lists of parameters, to be reduced as one. num_groups is its
        deprecated name.
    sparse_as_dense: sparse gradients travel as dense ones, and are sparse again for the step.
    process_set: whose ranks share gradients; on other ranks the optimizer is the given one.
    """
    _check_kinds(optimizer, op, compression, gradient_predivide_factor,
                 backward_passes_per_step, process_set)
    check_count('num_groups', num_groups, 0)
    _check(op, gradient_predivide_factor, process_set)
    if num_groups != 0:
        warnings.warn('num_groups is deprecated: use groups', DeprecationWarning, stacklevel=2)
        groups = num_groups if groups is None else groups
    names = name_parameters(named_parameters, optimizer)
    trained = [parameter for group in optimizer.param_groups for parameter in group['params']
               if parameter.requires_grad]
    groups = make_groups(groups, trained)
    named = all_names(names, optimizer)
    teach_scalers()
    keep_out()
    exchange = None
    if not is_registered(process_set):
        raise ValueError(f'DistributedOptimizer: {UNKNOWN_SET}')
    # A single rank of an elastic job may be joined by others later.
    if process_set.included() and (process_set.size() > 1 or is_elastic()):
        if op == Adasum:
            return _mix_in(optimizer, AdasumOptimizer, named, names, compression, process_set)
        reduction = Reduction(op, compression, gradient_predivide_factor, sparse_as_dense,
                              process_set)
        exchange = GradientExchange(reduction, names, groups, backward_passes_per_step)
    return _mix_in(optimizer, _DistributedOptimizer, named, exchange, backward_passes_per_step)


def _check_kinds(optimizer, op, compression, predivide_factor, passes, process_set):
    if not hasattr(optimizer, 'param_groups'):
        raise wrong_type('optimizer', optimizer, 'a torch.optim.Optimizer')
    if isinstance(optimizer, (_DistributedOptimizer, AdasumOptimizer)):
        raise ValueError('the optimizer is a DistributedOptimizer already')
    check_gradient_settings(op, compression, predivide_factor, process_set)
    check_count('backward_passes_per_step', passes, 1)


def _check(op, predivide_factor, process_set):
    if op == Adasum and process_set.size() & (process_set.size() - 1) != 0:
        raise NotImplementedError(
            'Running Adasum with non-power of 2 ranks is not supported yet.')
    if predivide_factor != 1.0 and op != Average:
        raise ValueError('gradient_predivide_factor not supported with op != Average')


def _mix_in(optimizer, base, named, *settings):
    """An instance of a class derived from both, with the optimizer's attributes except a step
    function that a scheduler has set on the instance. ``named`` is for scripts that look up the
    names of parameters."""
    kind = type(optimizer)
    mixed = type(kind.__name__, (base, kind), {'__module__': kind.__module__})
    result = mixed.__new__(mixed)
    result.__dict__.update(
        (name, value) for name, value in vars(optimizer).items() if name != 'step')
    result._parameter_names = named
    result._distribute(*settings)
    return result
