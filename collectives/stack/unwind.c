/* SPDX-License-Identifier: Apache-2.0 */
#include "collectives/stack/unwind.h"

#include "collectives/stack/expression.h"
#include "collectives/stack/frame_base.h"
#include "collectives/stack/tables.h"

static bool find_cfa(const struct hvd_stack_memory *memory,
                     const struct hvd_stack_row *row,
                     const struct hvd_stack_registers *registers, uint64_t *cfa)
{
    if (row->cfa_register < 0) {
        return hvd_stack_expression_run(memory, registers, row->cfa_expression, NULL,
                                        cfa);
    }
    if (!hvd_stack_registers_has(registers, (uint64_t)row->cfa_register)) {
        return false;
    }
    *cfa = registers->value[row->cfa_register] + (uint64_t)row->cfa_offset;
    return true;
}

/* Finds the caller's value of a register. Returns false if it is not known. */
static bool apply_rule(const struct hvd_stack_memory *memory,
                       const struct hvd_stack_rule *rule, unsigned number, uint64_t cfa,
                       const struct hvd_stack_registers *registers, uint64_t *value)
{
    switch (rule->kind) {
    case HVD_STACK_SAME:
        *value = registers->value[number];
        return hvd_stack_registers_has(registers, number);
    case HVD_STACK_UNDEFINED:
        return false;
    case HVD_STACK_AT:
        return hvd_stack_memory_read(memory, cfa + (uint64_t)rule->offset, value,
                                     sizeof(*value));
    case HVD_STACK_IS:
        *value = cfa + (uint64_t)rule->offset;
        return true;
    case HVD_STACK_IN:
        if (!hvd_stack_registers_has(registers, (uint64_t)rule->offset)) {
            return false;
        }
        *value = registers->value[rule->offset];
        return true;
    case HVD_STACK_AT_EXPRESSION:
        return hvd_stack_expression_run(memory, registers, rule->expression, &cfa,
                                        value) &&
               hvd_stack_memory_read(memory, *value, value, sizeof(*value));
    case HVD_STACK_IS_EXPRESSION:
        return hvd_stack_expression_run(memory, registers, rule->expression, &cfa, value);
    }
    return false;
}

/* Steps by the saved RBP and the return address above it, for code without tables. */
static enum hvd_stack_step step_by_rbp(const struct hvd_stack_memory *memory,
                                       struct hvd_stack_registers *registers)
{
    const uint64_t rbp = registers->value[HVD_STACK_RBP];
    uint64_t pair[2];

    if (!hvd_stack_registers_has(registers, HVD_STACK_RBP) ||
        !hvd_stack_registers_has(registers, HVD_STACK_RSP) ||
        rbp < registers->value[HVD_STACK_RSP] || rbp % sizeof(rbp) != 0 ||
        !hvd_stack_memory_read(memory, rbp, pair, sizeof(pair)) || pair[1] == 0) {
        return HVD_STACK_LOST;
    }
    registers->known = 0;
    hvd_stack_registers_set(registers, HVD_STACK_RBP, pair[0]);
    hvd_stack_registers_set(registers, HVD_STACK_RSP, rbp + sizeof(pair));
    hvd_stack_registers_set(registers, HVD_STACK_PC, pair[1]);
    registers->is_after_call = true;
    return HVD_STACK_STEPPED;
}

static enum hvd_stack_step step_by_row(const struct hvd_stack_memory *memory,
                                       const struct hvd_stack_row *row,
                                       struct hvd_stack_registers *registers)
{
    struct hvd_stack_registers caller = {.is_after_call = !row->is_signal};
    uint64_t cfa, value;

    if (row->rules[HVD_STACK_PC].kind == HVD_STACK_UNDEFINED) {
        return HVD_STACK_ENDED;
    }
    if (!find_cfa(memory, row, registers, &cfa)) {
        return HVD_STACK_LOST;
    }
    for (unsigned i = 0; i < HVD_STACK_REGISTERS; i++) {
        if (i != HVD_STACK_RSP &&
            apply_rule(memory, &row->rules[i], i, cfa, registers, &value)) {
            hvd_stack_registers_set(&caller, i, value);
        }
    }
    value = cfa;
    if (row->rules[HVD_STACK_RSP].kind != HVD_STACK_SAME &&
        !apply_rule(memory, &row->rules[HVD_STACK_RSP], HVD_STACK_RSP, cfa, registers,
                    &value)) {
        return HVD_STACK_LOST;
    }
    hvd_stack_registers_set(&caller, HVD_STACK_RSP, value);
    if (row->rules[HVD_STACK_PC].kind == HVD_STACK_SAME ||
        !hvd_stack_registers_has(&caller, HVD_STACK_PC)) {
        return HVD_STACK_LOST;
    }
    *registers = caller;
    return caller.value[HVD_STACK_PC] == 0 ? HVD_STACK_ENDED : HVD_STACK_STEPPED;
}

enum hvd_stack_step hvd_stack_unwind(const struct hvd_stack_memory *memory,
                                     uint64_t index,
                                     struct hvd_stack_registers *registers)
{
    struct hvd_stack_entry_pair entries;
    struct hvd_stack_row row;
    uint64_t rbp;

    if (index == 0 ||
        !hvd_stack_tables_find(memory, index, hvd_stack_registers_instruction(registers),
                               &entries, &row)) {
        return step_by_rbp(memory, registers);
    }
    if (row.cfa_register == HVD_STACK_RBP &&
        !hvd_stack_registers_has(registers, HVD_STACK_RBP) &&
        hvd_stack_frame_base_find(memory, row.function, registers->value[HVD_STACK_RSP],
                                  row.cfa_offset, &rbp)) {
        hvd_stack_registers_set(registers, HVD_STACK_RBP, rbp);
    }
    return step_by_row(memory, &row, registers);
}
