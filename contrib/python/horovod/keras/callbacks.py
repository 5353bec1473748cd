# SPDX-License-Identifier: Apache-2.0
"""Callbacks for ``model.fit``."""

import keras

from horovod._keras import callbacks as _callbacks

(BroadcastGlobalVariablesCallback, MetricAverageCallback, LearningRateScheduleCallback,
 LearningRateWarmupCallback, BestModelCheckpoint) = _callbacks.package(keras, __name__)
