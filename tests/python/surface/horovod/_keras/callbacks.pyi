# SPDX-License-Identifier: Apache-2.0
# For isinstance; a class that is derived from one of them is told what to derive from instead.

BroadcastGlobalVariablesCallbackImpl: type
MetricAverageCallbackImpl: type
LearningRateScheduleCallbackImpl: type
LearningRateWarmupCallbackImpl: type
