# SPDX-License-Identifier: Apache-2.0

from shared import ProcessSet, global_process_set, add_process_set, remove_process_set
