# SPDX-License-Identifier: Apache-2.0
"""The way of an optimizer's gradients from the tape to the step."""

from typing import Any, NamedTuple


class Settings(NamedTuple):
    """The arguments of DistributedOptimizer. ``reduction`` replaces the gradients of this rank by
    those of all ranks."""
    reduction: Any
    passes: int
    averages_passes: bool
    scales_local: bool


class Exchange:
    """Reduces the gradients of one optimizer, and adds up those of several passes.

    TensorFlow traces it, so nothing here depends on a tensor's value.
    """

    def __init__(self, engine, settings):
        self._reduction = settings.reduction
        self._scales_local = settings.scales_local
        self.aggregation = engine.Aggregation(settings.passes, settings.averages_passes,
                                              self._share)
        self._local = []
        self._variables = []  # of the gradients that are under way

    def keep_local(self, variable):
        """Excludes the variable's gradient from the reduction."""
        if not self._is_local(variable):
            self._local.append(variable)

    def _is_local(self, variable):
        return any(variable is each for each in self._local)

    def has_passes(self):
        """Whether a step takes more than one pass."""
        return self.aggregation.passes > 1

    def forget_passes(self):
        """The next pass is the first one of a step."""
        self.aggregation.forget()

    def reduce(self, gradients, variables):
        """The gradients to use in the step; None stays None. In a pass that is not the last one of
        a step, the result is meaningless."""
        present = [index for index, each in enumerate(gradients) if each is not None]
        self._variables = [variables[index] for index in present]
        result = list(gradients)
        for index, each in zip(present, self.aggregation([gradients[i] for i in present])):
            result[index] = each
        return result

    def run(self, step, skip):
        """Takes the step in its last pass; calls ``skip`` in the other passes."""
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
