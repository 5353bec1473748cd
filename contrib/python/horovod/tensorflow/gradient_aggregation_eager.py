# SPDX-License-Identifier: Apache-2.0
"""The class of horovod.tensorflow.gradient_aggregation with the arguments that it has for eager
mode."""

from horovod.common.process_sets import global_process_set
from horovod.tensorflow.gradient_aggregation import LocalGradientAggregationHelper


class LocalGradientAggregationHelperEager(LocalGradientAggregationHelper):
    """For optimizers of Keras, in any mode."""

    def __init__(self, backward_passes_per_step, allreduce_func, sparse_as_dense,
                 average_aggregated_gradients, process_set=global_process_set,
                 scale_local_gradients=True):
        super().__init__(backward_passes_per_step, allreduce_func, sparse_as_dense,
                         average_aggregated_gradients, None, self._OPTIMIZER_TYPE_KERAS,
                         process_set, scale_local_gradients)
