# SPDX-License-Identifier: Apache-2.0
"""DistributedOptimizer: averages gradients over the ranks while backward is still running."""

import contextlib
import warnings

import torch

from horovod.common.arguments import check_count, check_gradient_settings, wrong_type
from horovod.common.basics import Adasum, Average
from horovod.common.elastic import is_elastic
from horovod.common.library import lib
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
    """A mix-in for the class of the user's optimizer.

    ``_exchange`` is None if there is no other rank to exchange gradients with.
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
        """Changes the number of backward passes per step. Call it between two steps."""
        self.backward_passes_per_step = passes
        if self._exchange is not None:
            self._exchange.restart(passes)

    def synchronize(self):
        """Waits until all gradients are reduced. Scripts call it to change the reduced gradients,
        for example to clip them, and then call step() within ``skip_synchronize``."""
        if self._exchange is not None:
            self._exchange.synchronize(self.param_groups)
        self._synchronized = True

    @contextlib.contextmanager
    def skip_synchronize(self):
        """A context manager in which ``step`` does not wait for gradients, because the script has
        called ``synchronize`` already."""
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
        """Waits for the reduced gradients, then takes the step. With a closure, the gradients are
        reduced after each call of the closure."""
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
        lib.hvd_count_step()
        return result

    # This mark keeps torch from wrapping step() to run its hooks: the step() of the base class runs
    # them already.
    step.hooked = True

    def _synchronizing(self, closure):
        def compute():
            loss = closure()
            self.synchronize()
            if self._exchange is not None and isinstance(self, torch.optim.LBFGS):
                return self._exchange.agree_on(loss)  # LBFGS decides by the loss when to stop
            return loss

        return compute

    def zero_grad(self, *args, **kwargs):
        """Like zero_grad of the base class. AssertionError while gradients are being reduced."""
        if self._exchange is not None and not self._exchange.is_idle():
            raise AssertionError(
                'optimizer.zero_grad() was called after loss.backward() but before '
                'optimizer.step() or optimizer.synchronize(). This is prohibited as it can '
                'cause a race condition.')
        self._is_unscaled = False
        return super().zero_grad(*args, **kwargs)

    def load_state_dict(self, *args, **kwargs):
        """Like load_state_dict of the base class; also forgets the backward passes counted so
        far."""
        self.set_backward_passes_per_step(self.backward_passes_per_step)
        self._synchronized = self._is_unscaled = False
        return super().load_state_dict(*args, **kwargs)


def DistributedOptimizer(optimizer, named_parameters=None, compression=Compression.none,
                         backward_passes_per_step=1, op=Average, gradient_predivide_factor=1.0,
                         num_groups=0, groups=None, sparse_as_dense=False,
                         process_set=global_process_set):
    """Returns an optimizer that reduces the gradients over all ranks before each step.

    The result is also an instance of the optimizer's own class, and shares its state and
    hyperparameters. All ranks must make it with the same arguments.

    optimizer: the torch.optim.Optimizer to wrap.
    named_parameters: ``model.named_parameters()``; the ranks match gradients by these names.
        Without names, the ranks match them by their positions in the optimizer.
    compression: a member of hvd.Compression: the type in which gradients travel between ranks.
    backward_passes_per_step: the number of backward passes whose gradients accumulate before a
        step. The reduction of a gradient starts during the last of them, as soon as backward has
        computed it.
    op: how to reduce gradients: Average, Sum, Min, Max or Product. With Adasum the ranks combine
        the steps that they take with their own gradients; the number of ranks must be a power of
        two.
    gradient_predivide_factor: splits the division of Average: the gradients are multiplied by 1/f
        before the sum and by f/size after it, to avoid overflow.
    groups: a number of groups, or lists of parameters; the gradients of a group are reduced as
        one. num_groups is the deprecated name of this argument.
    sparse_as_dense: sends sparse gradients as dense tensors; they are sparse again for the step.
    process_set: the ranks that share gradients. On other ranks the optimizer works alone.

    Raises ValueError, TypeError or NotImplementedError for wrong arguments. step() raises
    HorovodInternalError if a reduction fails.
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
    # More ranks may join an elastic job that has only one now.
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
    """Returns an instance of a new class derived from ``base`` and the optimizer's class. It gets
    the optimizer's attributes, except a step function that a scheduler has set on the instance.
    ``named`` becomes ``_parameter_names``, in which some scripts look up names."""
    kind = type(optimizer)
    mixed = type(kind.__name__, (base, kind), {'__module__': kind.__module__})
    result = mixed.__new__(mixed)
    result.__dict__.update(
        (name, value) for name, value in vars(optimizer).items() if name != 'step')
    result._parameter_names = named
    result._distribute(*settings)
    return result
