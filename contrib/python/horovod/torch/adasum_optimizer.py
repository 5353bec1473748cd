# SPDX-License-Identifier: Apache-2.0
"""DistributedOptimizer with op=Adasum: the ranks combine their steps, not their gradients."""

import torch

from horovod.common.alike import StartCheck
from horovod.common.basics import Adasum, Max
from horovod.common.exceptions import HorovodInternalError
from horovod.common.library import lib
from horovod.common.requests import synchronize, tensor_name
from horovod.torch.checksum import REMEDY, checksum
from horovod.torch.collectives.allreduce import allreduce_, allreduce_async_


class AdasumOptimizer(torch.optim.Optimizer):
    """A mix-in for the class of the user's optimizer.

    Each rank takes a step with its own gradients. Adasum then combines the differences between the
    parameters after and before the step, and all ranks apply the result.
    """

    def _distribute(self, names, compression, process_set):
        self._label = tensor_name('optimizer', None, process_set)  # for parameters without a name
        self._names = names
        self._compression = compression
        self._process_set = process_set
        self._start_check = StartCheck(process_set, REMEDY)

    def step(self, closure=None):
        """Takes a step with this rank's gradients, then replaces it by the Adasum of the steps of
        all ranks. If that fails with HorovodInternalError, the parameters are unchanged."""
        moving = self._trained()
        self._start_check.step(checksum, lambda: moving)
        starts = [tensor.clone() for tensor in moving.values()]
        result = super().step() if closure is None else super().step(closure)
        with torch.no_grad():
            self._combine(moving, starts)
        lib.hvd_count_step()
        return result

    # This mark keeps torch from wrapping step() to run its hooks: the step() of the base class runs
    # them already.
    step.hooked = True

    def _trained(self):
        """Returns {name: parameter} for the parameters that a step may change. The names are the
        same on all ranks."""
        return {self._names.get(parameter, f'{self._label}.{position}.{index}'):
                parameter.detach()
                for position, group in enumerate(self.param_groups)
                for index, parameter in enumerate(group['params']) if parameter.requires_grad}

    def _combine(self, moved, starts):
        """Replaces the steps by their Adasum. If a reduction fails, waits for all the others,
        restores all parameters and raises the failure."""
        under_way = []
        for (name, tensor), start in zip(moved.items(), starts):
            compressed, ctx = self._compression.compress(tensor.sub_(start))
            under_way.append((allreduce_async_(compressed, name=name, op=Adasum,
                                               process_set=self._process_set), ctx))
        failure = None
        for tensor, start, (handle, ctx) in zip(moved.values(), starts, under_way):
            try:
                tensor.copy_(self._compression.decompress(synchronize(handle), ctx).add_(start))
            except HorovodInternalError as error:
                failure = failure or error
        if failure is not None:
            for tensor, start in zip(moved.values(), starts):
                tensor.copy_(start)
            raise failure

    def _unscale_together(self, unscale):
        """Lets a GradScaler check this rank's gradients, and combines the results: if any rank
        finds a gradient that is not finite, all ranks skip the step."""
        found = unscale()
        worst = max(map(float, found.values()), default=0.0)
        worst = allreduce_(torch.tensor(worst), name=f'{self._label}.found_inf', op=Max,
                           process_set=self._process_set).item()
        for each in found.values():
            each.fill_(worst)
        return found

    def set_backward_passes_per_step(self, passes):
        """Does nothing: gradients accumulate on this rank until step()."""

    def synchronize(self):
        """Does nothing: gradients are not reduced."""

    def skip_synchronize(self):
        """Raises AssertionError: after a step without the other ranks, this rank would have
        different parameters."""
        raise AssertionError(
            'Skipping synchronization is not supported when using Adasum optimizer.')
