# SPDX-License-Identifier: Apache-2.0
"""The reduction of gradients, for DistributedGradientTape and the DistributedOptimizers of
TensorFlow and Keras."""

import warnings

import tensorflow as tf

from horovod.common.arguments import check_count, check_gradient_settings
from horovod.common.basics import Average
from horovod.common.process_sets import UNKNOWN_SET, global_process_set, is_registered
from horovod.tensorflow import alike
from horovod.tensorflow.collectives.allreduce import allreduce, grouped_allreduce
from horovod.tensorflow.collectives.nodes import in_turn, may_have_others, size_of
from horovod.tensorflow.collectives.scaling import scaled
from horovod.tensorflow.compression import Compression
from horovod.tensorflow.native import nodes_wait


def variable_key(variable):
    """Returns a key that is the same for a variable of Keras 3 and the variable of TensorFlow that
    it holds."""
    if isinstance(getattr(type(variable), 'value', None), property):
        variable = variable.value
    return id(variable)


class Reduction:
    """A function that reduces gradients. The arguments are those of DistributedGradientTape."""

    def __init__(self, op=Average, gradient_predivide_factor=1.0, compression=Compression.none,
                 sparse_as_dense=False, device_dense='', device_sparse='', num_groups=0,
                 groups=None, process_set=global_process_set):
        check_gradient_settings(op, compression, gradient_predivide_factor, process_set)
        check_count('num_groups', num_groups, 0)
        if gradient_predivide_factor != 1.0 and op != Average:
            raise ValueError('gradient_predivide_factor not supported with op != Average')
        if not is_registered(process_set):
            raise ValueError(UNKNOWN_SET)
        if num_groups != 0:
            warnings.warn('num_groups is deprecated: use groups', DeprecationWarning,
                          stacklevel=3)
            groups = num_groups if groups is None else groups
        self.process_set = process_set
        self.op = op
        self._groups = _checked_groups(groups)
        self._sparse_as_dense = sparse_as_dense
        self._settings = {'op': op, 'prescale_factor': 1.0 / gradient_predivide_factor,
                          'postscale_factor': gradient_predivide_factor,
                          'compression': compression, 'device_dense': device_dense,
                          'device_sparse': device_sparse, 'process_set': process_set}

    def has_others(self):
        """Whether this rank shares gradients with others, or may do so later in an elastic job."""
        return may_have_others(self.process_set)

    def __call__(self, gradients, variables, use_generic_names=False):
        """Returns the gradients reduced over all ranks; None stays None. ``variables``: the
        variable of each gradient, for groups. use_generic_names: the ranks match gradients by
        position."""
        gradients = list(gradients)
        if self._sparse_as_dense:
            gradients = [tf.convert_to_tensor(each) if isinstance(each, tf.IndexedSlices)
                         else each for each in gradients]
        if not self.has_others():
            return gradients
        variables = list(variables)
        groups = self._divide(gradients, variables)
        results = in_turn(groups, lambda group: self._reduce(
            [gradients[index] for index in group],
            f'grad_{group[0]}' if use_generic_names else None))
        reduced = list(gradients)
        for group, each in zip(groups, results):
            for index, gradient in zip(group, each):
                reduced[index] = gradient
        self._check(gradients, variables, reduced, use_generic_names)
        return reduced

    def scale_local(self, gradient):
        """Returns the gradient of a local variable, divided by the number of ranks."""
        if gradient is None or not self.has_others():
            return gradient
        size = size_of(self.process_set)
        if isinstance(gradient, tf.IndexedSlices):
            return tf.IndexedSlices(scaled(gradient.values, divisor=size), gradient.indices,
                                    gradient.dense_shape)
        return scaled(gradient, divisor=size)

    def _check(self, gradients, variables, reduced, use_generic_names):
        present = [index for index, each in enumerate(gradients) if each is not None]
        if present and len(variables) == len(gradients):
            alike.check([variables[index] for index in present],
                        [_values(gradients[index]) for index in present],
                        _values(reduced[present[-1]]),
                        'gradients' if use_generic_names else None, self.process_set)

    def _reduce(self, gradients, name):
        if len(gradients) == 1:
            return [allreduce(gradients[0], name=name, **self._settings)]
        return grouped_allreduce(gradients, name=name, **self._settings)

    def _divide(self, gradients, variables):
        """Divides the gradients into groups that are reduced as one; returns the indices of each
        group."""
        present = [index for index, each in enumerate(gradients) if each is not None]
        if isinstance(self._groups, list):
            return _by_variable(self._groups, present, variables)
        if self._groups:
            return _runs(present, self._groups)
        # In eager mode all gradients are ready: reduce them as one group. In a graph, reduce each
        # gradient as soon as it is computed. But if nodes occupy a thread while they wait, use one
        # group: otherwise the few threads of a session could wait for different gradients on
        # different ranks.
        return ([present] if present and (nodes_wait or tf.executing_eagerly())
                else [[index] for index in present])


def _values(gradient):
    return gradient.values if isinstance(gradient, tf.IndexedSlices) else gradient


def _checked_groups(groups):
    """Returns the argument groups: None, a number, or lists of variables turned into lists of their
    keys. ValueError for anything else."""
    if groups is None or (isinstance(groups, int) and groups >= 0):
        return groups
    if not (isinstance(groups, (list, tuple))
            and all(isinstance(group, (list, tuple)) for group in groups)):
        raise ValueError('groups should be a non-negative integer or a list of list of '
                         f'tf.Variable, not {groups!r}')
    keys = [[variable_key(each) for each in group] for group in groups]
    members = [key for group in keys for key in group]
    if len(set(members)) < len(members):
        raise ValueError('A variable can only appear once in groups.')
    return keys


def _by_variable(groups, present, variables):
    group_of = {key: number for number, group in enumerate(groups) for key in group}
    divided = {}
    for index in present:
        key = variable_key(variables[index])
        divided.setdefault(group_of.get(key, ('alone', index)), []).append(index)
    return list(divided.values())


def _runs(present, count):
    """Divides the list into ``count`` runs of neighbours whose lengths differ by at most one."""
    count = min(count, len(present))
    bounds = [number * len(present) // count for number in range(count + 1)] if count else []
    return [present[begin:end] for begin, end in zip(bounds, bounds[1:])]
