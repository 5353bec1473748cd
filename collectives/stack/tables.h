/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the unwind tables of a program or library (.eh_frame_hdr and .eh_frame), as they
 * lie in memory: for each instruction, where the function has saved the registers of its
 * caller. DWARF 5 section 6.4 and the Linux Standard Base describe them.
 *
 * The tables may be wrong, or no tables at all: reads are checked and work is bounded.
 * Threads: any. */
#ifndef HVD_STACK_TABLES_H
#define HVD_STACK_TABLES_H

#include "collectives/stack/bytes.h"
#include "collectives/stack/memory.h"
#include "collectives/stack/registers.h"

enum hvd_stack_rule_kind {
    HVD_STACK_SAME, /* the caller's value is still in the register */
    HVD_STACK_UNDEFINED, /* lost; of PC: the function has no caller */
    HVD_STACK_AT, /* at CFA + offset */
    HVD_STACK_IS, /* CFA + offset */
    HVD_STACK_IN, /* in register `offset` */
    HVD_STACK_AT_EXPRESSION, /* at the address that the expression yields */
    HVD_STACK_IS_EXPRESSION, /* what the expression yields */
};

struct hvd_stack_rule {
    enum hvd_stack_rule_kind kind;
    int64_t offset;
    struct hvd_stack_bytes expression;
};

enum {
    HVD_STACK_ENTRY_BYTES = 16384, /* the longest entry; CPython's longest has 3,000 */
};

/* A row of the tables, about one instruction. The CFA is the value of the stack pointer
 * before the call of the function. */
struct hvd_stack_row {
    uint64_t function; /* its first instruction */
    bool is_signal; /* the function is where a signal handler returns to */
    int64_t cfa_register; /* -1: cfa_expression yields the CFA */
    int64_t cfa_offset;
    struct hvd_stack_bytes cfa_expression;
    struct hvd_stack_rule rules[HVD_STACK_REGISTERS];
};

/* The entries that a row was read from; expressions of the row lie in them. */
struct hvd_stack_entry_pair {
    uint8_t common[HVD_STACK_ENTRY_BYTES];
    uint8_t function[HVD_STACK_ENTRY_BYTES];
};

/* Finds the row of an instruction. index: the address of .eh_frame_hdr. Returns false if
 * there is none. The row is valid as long as `entries` is unchanged. */
bool hvd_stack_tables_find(const struct hvd_stack_memory *memory, uint64_t index,
                           uint64_t instruction, struct hvd_stack_entry_pair *entries,
                           struct hvd_stack_row *row);

#endif
