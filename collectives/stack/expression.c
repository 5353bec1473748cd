/* SPDX-License-Identifier: Apache-2.0 */
#include "collectives/stack/expression.h"

enum {
    MOST_VALUES = 16,
};

enum {
    DEREFERENCE = 0x06,
    CONSTANT_U1 = 0x08,
    CONSTANT_S1 = 0x09,
    CONSTANT_U2 = 0x0a,
    CONSTANT_U4 = 0x0c,
    CONSTANT_U8 = 0x0e,
    DUPLICATE = 0x12,
    AND = 0x1a,
    MINUS = 0x1c,
    OR = 0x21,
    PLUS = 0x22,
    PLUS_CONSTANT = 0x23,
    SHIFT_LEFT = 0x24,
    GREATER_OR_EQUAL = 0x2a,
    LITERAL_0 = 0x30,
    LITERAL_31 = 0x4f,
    BASE_REGISTER_0 = 0x70,
    BASE_REGISTER_31 = 0x8f,
};

struct values {
    uint64_t all[MOST_VALUES];
    int count;
    bool failed;
};

static void push_value(struct values *values, uint64_t value)
{
    if (values->count == MOST_VALUES) {
        values->failed = true;
        return;
    }
    values->all[values->count++] = value;
}

static uint64_t pop_value(struct values *values)
{
    if (values->count == 0) {
        values->failed = true;
        return 0;
    }
    return values->all[--values->count];
}

static uint64_t combine(uint8_t code, uint64_t left, uint64_t right, bool *failed)
{
    switch (code) {
    case AND:
        return left & right;
    case MINUS:
        return left - right;
    case OR:
        return left | right;
    case PLUS:
        return left + right;
    case SHIFT_LEFT:
        return right < 64 ? left << right : 0;
    case GREATER_OR_EQUAL:
        return (int64_t)left >= (int64_t)right;
    default:
        *failed = true;
        return 0;
    }
}

/* Runs an operation that takes nothing from the values, or one value. Returns false if
 * the operation is none of these. */
static bool run_simple(const struct hvd_stack_memory *memory, uint8_t code,
                       struct hvd_stack_bytes *program, struct values *values)
{
    uint64_t value;

    switch (code) {
    case CONSTANT_U1:
    case CONSTANT_U2:
    case CONSTANT_U4:
    case CONSTANT_U8:
        push_value(values,
                   hvd_stack_bytes_take(program, (size_t)1 << (code - CONSTANT_U1) / 2));
        return true;
    case CONSTANT_S1:
        push_value(values, (uint64_t)(int8_t)hvd_stack_bytes_take(program, 1));
        return true;
    case PLUS_CONSTANT:
        push_value(values, pop_value(values) + hvd_stack_bytes_take_uleb(program));
        return true;
    case DUPLICATE:
        value = pop_value(values);
        push_value(values, value);
        push_value(values, value);
        return true;
    case DEREFERENCE:
        values->failed |=
            !hvd_stack_memory_read(memory, pop_value(values), &value, sizeof(value));
        push_value(values, values->failed ? 0 : value);
        return true;
    default:
        return false;
    }
}

static void run_operation(const struct hvd_stack_memory *memory,
                          const struct hvd_stack_registers *registers,
                          struct hvd_stack_bytes *program, struct values *values)
{
    const uint8_t code = (uint8_t)hvd_stack_bytes_take(program, 1);

    if (code >= LITERAL_0 && code <= LITERAL_31) {
        push_value(values, code - LITERAL_0);
    } else if (code >= BASE_REGISTER_0 && code <= BASE_REGISTER_31) {
        const unsigned number = code - BASE_REGISTER_0;
        const uint64_t offset = (uint64_t)hvd_stack_bytes_take_sleb(program);

        if (hvd_stack_registers_has(registers, number)) {
            push_value(values, registers->value[number] + offset);
        } else {
            values->failed = true;
        }
    } else if (!run_simple(memory, code, program, values)) {
        const uint64_t right = pop_value(values);
        const uint64_t left = pop_value(values);

        push_value(values, combine(code, left, right, &values->failed));
    }
}

bool hvd_stack_expression_run(const struct hvd_stack_memory *memory,
                              const struct hvd_stack_registers *registers,
                              struct hvd_stack_bytes program, const uint64_t *start,
                              uint64_t *result)
{
    struct values values = {0};

    if (start != NULL) {
        push_value(&values, *start);
    }
    while (program.left > 0 && !program.failed && !values.failed) {
        run_operation(memory, registers, &program, &values);
    }
    if (program.failed || values.failed || values.count == 0) {
        return false;
    }
    *result = pop_value(&values);
    return true;
}
