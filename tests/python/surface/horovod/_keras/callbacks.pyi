# SPDX-License-Identifier: Apache-2.0
# Classes that projects use with isinstance(). A class derived from one of them raises an error that
# names the class to derive from instead.

BroadcastGlobalVariablesCallbackImpl: type
MetricAverageCallbackImpl: type
LearningRateScheduleCallbackImpl: type
LearningRateWarmupCallbackImpl: type
