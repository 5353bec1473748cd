# SPDX-License-Identifier: Apache-2.0
"""Reduces an optimizer's gradients after the backward pass and before the step."""

from typing import Any, NamedTuple


class Settings(NamedTuple):
    """The arguments of DistributedOptimizer. ``reduction(gradients, variables)`` returns the
    gradients reduced over all ranks."""
    reduction: Any
    passes: int
    averages_passes: bool
    scales_local: bool


class Exchange:
    """Accumulates the gradients of one optimizer over several backward passes and reduces them.

    TensorFlow traces this code, so it must not branch on the value of a tensor.
    """

    def __init__(self, engine, settings):
        self._reduction = settings.reduction
        self._scales_local = settings.scales_local
        self.aggregation = engine.Aggregation(settings.passes, settings.averages_passes,
                                              self._share)
        self._local = []
        self._variables = []  # the variables of the gradients that reduce() is reducing

    def keep_local(self, variable):
        """Excludes the variable's gradient from the reduction."""
        if not self._is_local(variable):
            self._local.append(variable)

    def _is_local(self, variable):
        return any(variable is each for each in self._local)

    def has_passes(self):
        """Whether a step consists of more than one backward pass."""
        return self.aggregation.passes > 1

    def forget_passes(self):
        """Drops the gradients accumulated so far, so that the next backward pass is the first of a
        step."""
        self.aggregation.forget()

    def reduce(self, gradients, variables):
        """Returns the gradients for the step; None stays None. Use them only in the last backward
        pass of a step."""
        present = [index for index, each in enumerate(gradients) if each is not None]
        self._variables = [variables[index] for index in present]
        result = list(gradients)
        for index, each in zip(present, self.aggregation([gradients[i] for i in present])):
            result[index] = each
        return result

    def run(self, step, skip):
        """Calls ``step`` in the last backward pass of a step, and ``skip`` in the other passes."""
        return self.aggregation.apply_on_last(step, skip)

    def _share(self, gradients):
        result = list(gradients)
        shared = [index for index, variable in enumerate(self._variables)
                  if not self._is_local(variable)]
        reduced = self._reduction([result[index] for index in shared],
                                  [self._variables[index] for index in shared])
        for index, each in zip(shared, reduced):
            result[index] = each
        if self._scales_local:
            for index in set(range(len(result))).difference(shared):
                result[index] = self._reduction.scale_local(result[index])
        return result
