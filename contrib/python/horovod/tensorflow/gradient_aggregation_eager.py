# SPDX-License-Identifier: Apache-2.0
"""Horovod's LocalGradientAggregationHelperEager, for optimizers of other projects."""

from horovod.common.process_sets import global_process_set
from horovod.tensorflow.gradient_aggregation import LocalGradientAggregationHelper


class LocalGradientAggregationHelperEager(LocalGradientAggregationHelper):
    """A LocalGradientAggregationHelper for optimizers of Keras, in eager mode and in graphs."""

    def __init__(self, backward_passes_per_step, allreduce_func, sparse_as_dense,
                 average_aggregated_gradients, process_set=global_process_set,
                 scale_local_gradients=True):
        super().__init__(backward_passes_per_step, allreduce_func, sparse_as_dense,
                         average_aggregated_gradients, None, self._OPTIMIZER_TYPE_KERAS,
                         process_set, scale_local_gradients)
