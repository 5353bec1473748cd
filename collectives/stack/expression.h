/* SPDX-License-Identifier: Apache-2.0 */
/* Evaluates the expressions of unwind tables: DWARF 5, section 2.5. */
#ifndef HVD_STACK_EXPRESSION_H
#define HVD_STACK_EXPRESSION_H

#include "collectives/stack/bytes.h"
#include "collectives/stack/memory.h"
#include "collectives/stack/registers.h"

/* start: what the expression begins with; NULL: nothing. Returns false if the expression
 * is malformed, has an operation that compilers do not use in unwind tables, or needs a
 * register or memory that is not known. */
bool hvd_stack_expression_run(const struct hvd_stack_memory *memory,
                              const struct hvd_stack_registers *registers,
                              struct hvd_stack_bytes program, const uint64_t *start,
                              uint64_t *result);

#endif
