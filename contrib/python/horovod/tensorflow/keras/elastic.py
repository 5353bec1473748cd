# SPDX-License-Identifier: Apache-2.0
"""Elastic training: ``hvd.elastic``."""

from tensorflow import keras

from horovod._keras import elastic as _elastic

(KerasState, CommitStateCallback, UpdateBatchStateCallback, UpdateEpochStateCallback,
 run) = _elastic.package(keras, __name__)
