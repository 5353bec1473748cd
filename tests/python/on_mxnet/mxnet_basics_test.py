# SPDX-License-Identifier: Apache-2.0
"""The life of the job with MXNet."""

import horovod.mxnet as hvd
from basics_cases import Basics
from mxnet_case import Case


class OfMxnet(Basics, Case):
    hvd = hvd
