# SPDX-License-Identifier: Apache-2.0
# The other names of this module are those of the package.

from shared import _basics
from tensorflow_shared import (
    _allreduce, _grouped_allreduce, _reducescatter, _grouped_reducescatter,
    handle_average_backwards_compatibility, gpu_available, _executing_eagerly)

_alltoall_grad: object
def _normalize_name(name): ...
