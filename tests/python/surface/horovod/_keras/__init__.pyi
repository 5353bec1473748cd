# SPDX-License-Identifier: Apache-2.0

_PRE_TF_2_4_0 = False
_IS_TF2 = True

CallableList: type

def create_distributed_optimizer(keras, optimizer, name, device_dense, device_sparse, compression,
                                 sparse_as_dense, gradient_predivide_factor, op,
                                 backward_passes_per_step=1, average_aggregated_gradients=False,
                                 groups=None, process_set=global_process_set,
                                 scale_local_gradients=True): ...
