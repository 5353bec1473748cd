/* SPDX-License-Identifier: Apache-2.0 */
/* The registers of x86-64 that a walk of a stack needs, by their numbers in DWARF. */
#ifndef HVD_STACK_REGISTERS_H
#define HVD_STACK_REGISTERS_H

#include <stdbool.h>
#include <stdint.h>

enum {
    HVD_STACK_RBP = 6,
    HVD_STACK_RSP = 7,
    HVD_STACK_PC = 16,
    HVD_STACK_REGISTERS = 17,
};

struct hvd_stack_registers {
    uint64_t value[HVD_STACK_REGISTERS];
    uint32_t known; /* bit N: value[N] is known */
    /* PC is where a call returns to, so the call itself is one byte earlier; false where
     * the thread was interrupted */
    bool is_after_call;
};

static inline bool hvd_stack_registers_has(const struct hvd_stack_registers *registers,
                                           uint64_t number)
{
    return number < HVD_STACK_REGISTERS && (registers->known >> number & 1) != 0;
}

static inline void hvd_stack_registers_set(struct hvd_stack_registers *registers,
                                           unsigned number, uint64_t value)
{
    registers->value[number] = value;
    registers->known |= 1u << number;
}

/* Returns an address within the instruction that the thread is in. */
static inline uint64_t
hvd_stack_registers_instruction(const struct hvd_stack_registers *registers)
{
    return registers->value[HVD_STACK_PC] - (registers->is_after_call ? 1 : 0);
}

#endif
