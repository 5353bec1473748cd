# SPDX-License-Identifier: Apache-2.0
"""init, shutdown and ranks with MXNet."""

import horovod.mxnet as hvd
from basics_cases import Basics
from mxnet_case import Case


class OfMxnet(Basics, Case):
    hvd = hvd
