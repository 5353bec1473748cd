/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the value of RBP in a function that uses it as the base of its frame, of which
 * only RSP is known: /proc shows no other register of a thread that sleeps. */
#ifndef HVD_STACK_FRAME_BASE_H
#define HVD_STACK_FRAME_BASE_H

#include "collectives/stack/memory.h"

/* function: its first instruction. rsp: where it calls another function. distance: from
 * RBP to the CFA (tables.h), below which lies the address to return to. Returns false if
 * RBP is not found. */
bool hvd_stack_frame_base_find(const struct hvd_stack_memory *memory, uint64_t function,
                               uint64_t rsp, int64_t distance, uint64_t *rbp);

#endif
