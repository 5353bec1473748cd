# SPDX-License-Identifier: Apache-2.0
"""Training that goes on when ranks die or come: ``hvd.elastic``."""

import keras

from horovod._keras import elastic as _elastic

(KerasState, CommitStateCallback, UpdateBatchStateCallback, UpdateEpochStateCallback,
 run) = _elastic.package(keras, __name__)
