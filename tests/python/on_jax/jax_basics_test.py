# SPDX-License-Identifier: Apache-2.0
"""init, shutdown and ranks with JAX."""

import horovod.jax as hvd
from basics_cases import Basics
from jax_case import Case


class OfJax(Basics, Case):
    hvd = hvd
