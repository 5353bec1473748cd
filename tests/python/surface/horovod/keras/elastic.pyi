# SPDX-License-Identifier: Apache-2.0

from keras_shared import (
    run, KerasState, CommitStateCallback, UpdateBatchStateCallback, UpdateEpochStateCallback)
