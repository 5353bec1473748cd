# SPDX-License-Identifier: Apache-2.0
# Classes that projects use with isinstance().

CommitStateCallbackImpl: type
UpdateBatchStateCallbackImpl: type
UpdateEpochStateCallbackImpl: type
