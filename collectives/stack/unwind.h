/* SPDX-License-Identifier: Apache-2.0 */
/* One step of a walk along a stack: from the registers in a function to those in its
 * caller, by the unwind tables (tables.h). */
#ifndef HVD_STACK_UNWIND_H
#define HVD_STACK_UNWIND_H

#include "collectives/stack/memory.h"
#include "collectives/stack/registers.h"

enum hvd_stack_step {
    HVD_STACK_STEPPED,
    HVD_STACK_ENDED, /* the function has no caller */
    HVD_STACK_LOST, /* the caller cannot be found */
};

/* index: the address of .eh_frame_hdr of the program or library that PC is in; 0: it has
 * none. If RBP is needed but not known, finds it by frame_base.h. Changes *registers only
 * if it steps. */
enum hvd_stack_step hvd_stack_unwind(const struct hvd_stack_memory *memory,
                                     uint64_t index,
                                     struct hvd_stack_registers *registers);

#endif
