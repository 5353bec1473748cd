# SPDX-License-Identifier: Apache-2.0
"""DistributedOptimizer with op Adasum: ranks combine the steps they take, not their gradients."""

import torch

from horovod.common.basics import Adasum, Max
from horovod.common.exceptions import HorovodInternalError
from horovod.common.requests import synchronize, tensor_name
from horovod.torch.collectives.allreduce import allreduce_, allreduce_async_


class AdasumOptimizer(torch.optim.Optimizer):
    """What DistributedOptimizer adds to the class of the user's optimizer.

    A rank's step ends where no other rank's does, so what a tensor's Adasum is made of is how
    far each rank has moved it from where all began.
    """

    def _distribute(self, names, compression, process_set):
        self._label = tensor_name('optimizer', None, process_set)  # for parameters without one
        self._names = names
        self._compression = compression
        self._process_set = process_set

    def step(self, closure=None):
        """Takes this rank's step, then moves every parameter by the Adasum of all ranks' steps."""
        moving = self._trained()
        starts = [tensor.clone() for tensor in moving.values()]
        result = super().step() if closure is None else super().step(closure)
        with torch.no_grad():
            self._combine(moving, starts)
        return result

    # torch wraps a step function without this mark to run its hooks; the base's step has them.
    step.hooked = True

    def _trained(self):
        """The parameters that a step may move, by the names that all ranks give them."""
        return {self._names.get(parameter, f'{self._label}.{position}.{index}'):
                parameter.detach()
                for position, group in enumerate(self.param_groups)
                for index, parameter in enumerate(group['params']) if parameter.requires_grad}

    def _combine(self, moved, starts):
        """Waits for every reduction, also when some fail; then no parameter has moved."""
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
        """A GradScaler looks at the gradients, which are this rank's own: where one rank finds
        one that is not finite, no rank takes the step."""
        found = unscale()
        worst = max(map(float, found.values()), default=0.0)
        worst = allreduce_(torch.tensor(worst), name=f'{self._label}.found_inf', op=Max,
                           process_set=self._process_set).item()
        for each in found.values():
            each.fill_(worst)
        return found

    def set_backward_passes_per_step(self, passes):
        """Does nothing: gradients add up on this rank until it takes its step."""

    def synchronize(self):
        """Does nothing: gradients are this rank's own."""

    def skip_synchronize(self):
        """Refused: a step without the other ranks would leave this one elsewhere."""
        raise AssertionError(
            'Skipping synchronization is not supported when using Adasum optimizer.')
