# SPDX-License-Identifier: Apache-2.0

from keras_shared import (
    BroadcastGlobalVariablesCallback, MetricAverageCallback, LearningRateScheduleCallback,
    LearningRateWarmupCallback, BestModelCheckpoint)
