# SPDX-License-Identifier: Apache-2.0
# For isinstance.

CommitStateCallbackImpl: type
UpdateBatchStateCallbackImpl: type
UpdateEpochStateCallbackImpl: type
