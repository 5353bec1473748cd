# SPDX-License-Identifier: Apache-2.0
"""The exchange of an optimizer's gradients during backward, and its end before the step."""

import weakref

from horovod.common.exceptions import HorovodInternalError
from horovod.common.requests import tensor_name
from horovod.torch.gradients import call_when_accumulated

_TOO_OFTEN = ('Gradients were computed more than backward_passes_per_step times before call to '
              'step(). Increase backward_passes_per_step to accumulate gradients locally.')


class _Bucket:
    """Parameters whose gradients travel together, mostly one."""

    def __init__(self, parameters, name, passes):
        self.parameters = parameters
        self.name = name
        self.reset(passes)

    def reset(self, passes):
        """A new step begins."""
        self.finish = None  # the function that waits for the reduction, once it is under way
        self.passes_left = dict.fromkeys(self.parameters, passes)
        self.incomplete = len(self.parameters)
        self.is_fresh = True

    def add_pass(self, parameter):
        """Notes a backward pass; true when it was the last one of the last parameter."""
        if self.finish is not None or self.passes_left[parameter] == 0:
            raise AssertionError(_TOO_OFTEN)
        self.is_fresh = False
        self.passes_left[parameter] -= 1
        self.incomplete -= self.passes_left[parameter] == 0
        return self.incomplete == 0

    def takes_part(self):
        """Whether a step concerns it: it is under way, or not all of it is frozen."""
        return self.finish is not None or any(
            parameter.requires_grad for parameter in self.parameters)


class GradientExchange:
    """Submits gradients as backward completes them; ``synchronize`` ends a step's exchange."""

    def __init__(self, reduction, names, groups, passes):
        """``names`` maps parameters to names that all ranks give them; ``groups`` are tuples of
        parameters to reduce as one."""
        # For parameters without a name.
        self._label = tensor_name('optimizer', None, reduction.process_set)
        self._reduction = reduction
        self._names = names
        self._passes = passes
        self._group_of = {parameter: group for group in groups for parameter in group}
        self._bucket_of = {}
        self._buckets = []
        self._unhook = []
        weakref.finalize(self, _call_all, self._unhook).atexit = False

    def watch(self, param_groups):
        """Begins with those parameters that need gradients and are not watched yet: all of them
        at first, later those that were frozen or added."""
        for position, group in enumerate(param_groups):
            for index, parameter in enumerate(group['params']):
                self._names.setdefault(parameter, f'{self._label}.{position}.{index}')
                if parameter.requires_grad and parameter not in self._bucket_of:
                    self._watch_one(parameter)

    def _watch_one(self, parameter):
        group = self._group_of.get(parameter, (parameter,))
        watched = [member for member in group if member in self._bucket_of]
        if watched:
            self._bucket_of[parameter] = self._bucket_of[watched[0]]
        else:
            self._bucket_of[parameter] = self._new_bucket(group, self._names[parameter])
        on_gradient = weakref.WeakMethod(self._on_gradient)
        self._unhook.append(call_when_accumulated(
            parameter, lambda parameter: on_gradient()(parameter)))

    def _new_bucket(self, group, name):
        bucket = _Bucket(group, name, self._passes)
        self._buckets.append(bucket)
        return bucket

    def _on_gradient(self, parameter):
        bucket = self._bucket_of[parameter]
        if bucket.add_pass(parameter):
            self._submit(bucket)

    def _submit(self, bucket):
        bucket.is_fresh = False
        bucket.finish = self._reduction.start(bucket.parameters, bucket.name)

    def synchronize(self, param_groups):
        """Submits what backward has not, then waits for everything, also when some fail."""
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

    def is_idle(self):
        """Whether no backward pass has begun since the last ``synchronize``."""
        return all(bucket.is_fresh for bucket in self._buckets)

    def restart(self, passes):
        """Forgets the passes counted so far; from now on a step takes ``passes`` of them."""
        self._passes = passes
        for bucket in self._buckets:
            bucket.reset(passes)


def _call_all(functions):
    for function in functions:
        function()
