# SPDX-License-Identifier: Apache-2.0
"""Reduces an optimizer's gradients. A reduction starts during backward and ends before the step."""

import weakref

from horovod.common.alike import StartCheck
from horovod.common.exceptions import HorovodInternalError
from horovod.common.requests import tensor_name
from horovod.torch.checksum import REMEDY, checksum
from horovod.torch.gradients import call_when_accumulated

_TOO_OFTEN = ('Gradients were computed more than backward_passes_per_step times before call to '
              'step(). Increase backward_passes_per_step to accumulate gradients locally.')


class _Bucket:
    """Parameters whose gradients are reduced together; usually one parameter."""

    __slots__ = ('parameters', 'name', 'finish', 'passes_left', 'incomplete', 'is_fresh')

    def __init__(self, parameters, name, passes):
        self.parameters = parameters
        self.name = name
        self.reset(passes)

    def reset(self, passes):
        """Starts to count the backward passes of a new step."""
        self.finish = None  # the function that waits for the reduction, once that has started
        self.passes_left = [passes] * len(self.parameters)
        self.incomplete = len(self.parameters)
        self.is_fresh = True

    def add_pass(self, index):
        """Counts a backward pass of a parameter. Returns whether all parameters have had all their
        passes."""
        left = self.passes_left[index] - 1
        if self.finish is not None or left < 0:
            raise AssertionError(_TOO_OFTEN)
        self.is_fresh = False
        self.passes_left[index] = left
        if left == 0:
            self.incomplete -= 1
        return self.incomplete == 0

    def takes_part(self):
        """Whether the bucket is reduced in this step: its reduction has started, or at least one
        of its parameters is not frozen."""
        return self.finish is not None or any(
            parameter.requires_grad for parameter in self.parameters)


class GradientExchange:
    """Submits gradients as soon as backward has completed them. ``synchronize`` waits until all
    gradients of a step are reduced."""

    def __init__(self, reduction, names, groups, passes):
        """``names``: {parameter: name}, the same names on all ranks; ``groups``: tuples of
        parameters to reduce as one; ``passes``: backward passes per step."""
        # The names of parameters that the user gave no name start with this label.
        self._label = tensor_name('optimizer', None, reduction.process_set)
        self._reduction = reduction
        self._names = names
        self._passes = passes
        self._member_of = {parameter: (group, index) for group in groups
                           for index, parameter in enumerate(group)}
        self._watched = set()
        self._buckets = []
        self._places = {}  # {first parameter of a bucket: its index in _buckets}
        self._unhook = []
        self._start_check = StartCheck(reduction.process_set, REMEDY)
        weakref.finalize(self, _call_all, self._unhook).atexit = False

    def watch(self, param_groups):
        """Installs hooks on parameters that require gradients and have none yet. Later calls find
        parameters that were added or that are no longer frozen."""
        for position, group in enumerate(param_groups):
            for index, parameter in enumerate(group['params']):
                if parameter not in self._watched and parameter.requires_grad:
                    self._names.setdefault(parameter, f'{self._label}.{position}.{index}')
                    self._watch_one(parameter)

    def _watch_one(self, parameter):
        group, index = self._member_of.get(parameter, ((parameter,), 0))
        place = self._places.setdefault(group[0], len(self._buckets))
        if place == len(self._buckets):
            self._buckets.append(_Bucket(group, self._names[parameter], self._passes))
        # torch never frees the objects that its hooks refer to. This exchange refers to the
        # parameters, so the hook gets only a weak reference to it.
        exchange = weakref.ref(self)
        self._unhook.append(call_when_accumulated(
            parameter, lambda *_: exchange()._on_gradient(place, index)))
        self._watched.add(parameter)

    def _on_gradient(self, place, index):
        bucket = self._buckets[place]
        if bucket.add_pass(index):
            self._submit(bucket)

    def _submit(self, bucket):
        bucket.is_fresh = False
        bucket.finish = self._reduction.start(bucket.parameters, bucket.name)

    def synchronize(self, param_groups):
        """Submits the gradients that backward has not completed, then waits for all reductions.
        If some fail, raises the first failure after the last one has ended."""
        self.watch(param_groups)
        buckets = [bucket for bucket in self._buckets if bucket.takes_part()]
        for bucket in buckets:
            if bucket.finish is None:
                self._submit(bucket)
        failure = None
        for bucket in buckets:
            try:
                bucket.finish()
            except HorovodInternalError as error:
                failure = failure or error
            bucket.reset(self._passes)
        if failure is not None:
            raise failure
        # Frozen members of groups may differ, and may have no name.
        self._start_check.step(checksum, lambda: {
            self._names[parameter]: parameter
            for bucket in buckets for parameter in bucket.parameters if parameter.requires_grad})

    def agree_on(self, loss):
        """Returns the loss reduced over all ranks, as the gradients are."""
        return self._reduction.of_loss(loss, f'{self._label}.loss')

    def is_idle(self):
        """Whether no backward pass has begun since the last ``synchronize``."""
        return all(bucket.is_fresh for bucket in self._buckets)

    def restart(self, passes):
        """Forgets the backward passes counted so far and sets their number per step."""
        self._passes = passes
        for bucket in self._buckets:
            bucket.reset(passes)


def _call_all(functions):
    for function in functions:
        function()
