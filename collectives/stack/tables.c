/* SPDX-License-Identifier: Apache-2.0 */
#include "collectives/stack/tables.h"

#include <string.h>

enum {
    INDEX_ENCODING = 0x3b, /* 4 bytes, signed, from the index on: all linkers' choice */
    MOST_REMEMBERED = 8,
    MOST_AUGMENTATION = 8,
};

/* Instructions of DWARF. The first three have an operand in their low six bits. */
enum {
    ADVANCE = 0x40,
    OFFSET = 0x80,
    RESTORE = 0xc0,
    HIGH_BITS = 0xc0,
    LOW_BITS = 0x3f,
    NOP = 0x00,
    SET_LOCATION = 0x01,
    ADVANCE_1 = 0x02,
    ADVANCE_2 = 0x03,
    ADVANCE_4 = 0x04,
    OFFSET_EXTENDED = 0x05,
    RESTORE_EXTENDED = 0x06,
    UNDEFINED = 0x07,
    SAME_VALUE = 0x08,
    REGISTER = 0x09,
    REMEMBER_STATE = 0x0a,
    RESTORE_STATE = 0x0b,
    DEFINE_CFA = 0x0c,
    DEFINE_CFA_REGISTER = 0x0d,
    DEFINE_CFA_OFFSET = 0x0e,
    DEFINE_CFA_EXPRESSION = 0x0f,
    EXPRESSION = 0x10,
    OFFSET_EXTENDED_SIGNED = 0x11,
    DEFINE_CFA_SIGNED = 0x12,
    DEFINE_CFA_OFFSET_SIGNED = 0x13,
    VALUE_OFFSET = 0x14,
    VALUE_OFFSET_SIGNED = 0x15,
    VALUE_EXPRESSION = 0x16,
    GNU_ARGUMENTS_SIZE = 0x2e,
};

/* The common part of the entries of several functions (a CIE). */
struct common {
    uint64_t code_unit;
    int64_t data_unit;
    uint8_t pointer_encoding;
    bool has_augmentation;
    bool is_signal;
    struct hvd_stack_bytes program;
};

/* A function's entry (an FDE). */
struct function {
    uint64_t first, end; /* its instructions */
    struct hvd_stack_bytes program;
};

/* The state while programs run. */
struct run {
    const struct common *common;
    uint64_t location, instruction;
    struct hvd_stack_row *row;
    struct hvd_stack_row initial; /* after the common program */
    struct hvd_stack_row remembered[MOST_REMEMBERED];
    int depth;
};

/* --- entries --- */

/* Reads the entry at this address. *id: its second word, with the address of the word. */
static bool read_entry(const struct hvd_stack_memory *memory, uint64_t address,
                       uint8_t *to, struct hvd_stack_bytes *entry, uint64_t *id)
{
    uint32_t length;

    if (!hvd_stack_memory_read(memory, address, &length, sizeof(length)) ||
        length < sizeof(uint32_t) || length > HVD_STACK_ENTRY_BYTES ||
        !hvd_stack_memory_read(memory, address + sizeof(length), to, length)) {
        return false;
    }
    *entry = (struct hvd_stack_bytes){
        .at = to, .left = length, .address = address + sizeof(length)};
    *id = hvd_stack_bytes_take(entry, sizeof(uint32_t));
    return true;
}

/* Takes the fields that the letters announce. Fails at an unknown letter. */
static void take_augmentation(const char *letters, struct hvd_stack_bytes *fields,
                              struct common *common)
{
    for (; *letters != '\0'; letters++) {
        if (*letters == 'R') {
            common->pointer_encoding = (uint8_t)hvd_stack_bytes_take(fields, 1);
        } else if (*letters == 'L') {
            hvd_stack_bytes_take(fields, 1);
        } else if (*letters == 'P') {
            const uint8_t encoding = (uint8_t)hvd_stack_bytes_take(fields, 1);

            hvd_stack_bytes_take_pointer(fields, encoding, 0);
        } else if (*letters == 'S') {
            common->is_signal = true;
        } else if (*letters != 'B') {
            fields->failed = true;
        }
    }
}

static bool read_common(const struct hvd_stack_memory *memory, uint64_t address,
                        uint8_t *to, struct common *common)
{
    char letters[MOST_AUGMENTATION + 1] = "";
    struct hvd_stack_bytes entry, fields;
    uint64_t id, version;
    size_t count = 0;

    *common = (struct common){0};
    if (!read_entry(memory, address, to, &entry, &id) || id != 0) {
        return false;
    }
    version = hvd_stack_bytes_take(&entry, 1);
    do {
        letters[count] = (char)hvd_stack_bytes_take(&entry, 1);
    } while (letters[count] != '\0' && ++count < MOST_AUGMENTATION);
    common->code_unit = hvd_stack_bytes_take_uleb(&entry);
    common->data_unit = hvd_stack_bytes_take_sleb(&entry);
    if (version == 1) {
        hvd_stack_bytes_take(&entry, 1);
    } else {
        hvd_stack_bytes_take_uleb(&entry);
    }
    common->has_augmentation = letters[0] == 'z';
    if (common->has_augmentation) {
        fields = hvd_stack_bytes_split(&entry, hvd_stack_bytes_take_uleb(&entry));
        take_augmentation(letters + 1, &fields, common);
        entry.failed |= fields.failed;
    }
    common->program = entry;
    return !entry.failed && (version == 1 || version == 3) &&
           (letters[0] == '\0' || letters[0] == 'z') && count < MOST_AUGMENTATION;
}

static bool read_function(const struct hvd_stack_memory *memory, uint64_t address,
                          struct hvd_stack_entry_pair *entries, struct common *common,
                          struct function *function)
{
    struct hvd_stack_bytes entry;
    uint64_t back;

    if (!read_entry(memory, address, entries->function, &entry, &back) ||
        !read_common(memory, address + sizeof(uint32_t) - back, entries->common,
                     common)) {
        return false;
    }
    function->first = hvd_stack_bytes_take_pointer(&entry, common->pointer_encoding, 0);
    function->end = function->first + hvd_stack_bytes_take_pointer(
                                          &entry, common->pointer_encoding & 0x0f, 0);
    if (common->has_augmentation) {
        hvd_stack_bytes_split(&entry, hvd_stack_bytes_take_uleb(&entry));
    }
    function->program = entry;
    return !entry.failed;
}

/* --- the index --- */

/* Returns the address of the entry of the function that the instruction may be in, by
 * binary search in the index; 0: there is none. */
static uint64_t search_index(const struct hvd_stack_memory *memory, uint64_t index,
                             uint64_t instruction)
{
    uint8_t head[64];
    struct hvd_stack_bytes bytes = {.at = head, .left = sizeof(head), .address = index};
    uint64_t low = 0, high;
    int32_t pair[2] = {0};

    bytes.left = hvd_stack_memory_read_some(memory, index, head, sizeof(head));
    const uint64_t version = hvd_stack_bytes_take(&bytes, 1);
    const uint8_t frame_encoding = (uint8_t)hvd_stack_bytes_take(&bytes, 1);
    const uint8_t count_encoding = (uint8_t)hvd_stack_bytes_take(&bytes, 1);
    const uint64_t encoding = hvd_stack_bytes_take(&bytes, 1);
    hvd_stack_bytes_take_pointer(&bytes, frame_encoding, index);
    high = hvd_stack_bytes_take_pointer(&bytes, count_encoding, index);
    if (bytes.failed || version != 1 || encoding != INDEX_ENCODING || high == 0 ||
        high > UINT32_MAX) {
        return 0;
    }
    while (high - low > 1) {
        const uint64_t middle = low + (high - low) / 2;

        if (!hvd_stack_memory_read(memory, bytes.address + middle * sizeof(pair), pair,
                                   sizeof(pair))) {
            return 0;
        }
        if (index + (uint64_t)(int64_t)pair[0] <= instruction) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return hvd_stack_memory_read(memory, bytes.address + low * sizeof(pair), pair,
                                 sizeof(pair))
               ? index + (uint64_t)(int64_t)pair[1]
               : 0;
}

/* --- programs --- */

/* Returns NULL for registers that no walk needs, such as vector registers. */
static struct hvd_stack_rule *rule_of(const struct run *run, uint64_t number)
{
    return number < HVD_STACK_REGISTERS ? &run->row->rules[number] : NULL;
}

static void set_rule(const struct run *run, uint64_t number,
                     enum hvd_stack_rule_kind kind, int64_t offset)
{
    struct hvd_stack_rule *rule = rule_of(run, number);

    if (rule != NULL) {
        *rule = (struct hvd_stack_rule){.kind = kind, .offset = offset};
    }
}

static void set_expression(const struct run *run, struct hvd_stack_bytes *program,
                           enum hvd_stack_rule_kind kind)
{
    struct hvd_stack_rule *rule = rule_of(run, hvd_stack_bytes_take_uleb(program));
    const struct hvd_stack_bytes expression =
        hvd_stack_bytes_split(program, hvd_stack_bytes_take_uleb(program));

    if (rule != NULL) {
        *rule = (struct hvd_stack_rule){.kind = kind, .expression = expression};
    }
}

static void restore_rule(const struct run *run, uint64_t number)
{
    struct hvd_stack_rule *rule = rule_of(run, number);

    if (rule != NULL) {
        *rule = run->initial.rules[number];
    }
}

static void set_cfa(const struct run *run, uint64_t number, int64_t offset)
{
    run->row->cfa_register = (int64_t)(number & INT64_MAX);
    run->row->cfa_offset = offset;
}

/* Multiplies as the CPU does: factors of broken tables may overflow. */
static int64_t scale(uint64_t factor, int64_t unit)
{
    return (int64_t)(factor * (uint64_t)unit);
}

static bool restore_state(struct run *run)
{
    if (run->depth == 0) {
        return false;
    }
    *run->row = run->remembered[--run->depth];
    return true;
}

/* Runs an instruction that has no operand in its low bits. Returns false if it is
 * unknown or impossible. */
static bool run_extended(struct run *run, uint8_t code, struct hvd_stack_bytes *program)
{
    const int64_t unit = run->common->data_unit;
    uint64_t number;

    switch (code) {
    case NOP:
        return true;
    case SET_LOCATION:
        run->location =
            hvd_stack_bytes_take_pointer(program, run->common->pointer_encoding, 0);
        return true;
    case ADVANCE_1:
    case ADVANCE_2:
    case ADVANCE_4:
        run->location += hvd_stack_bytes_take(program, (size_t)1 << (code - ADVANCE_1)) *
                         run->common->code_unit;
        return true;
    case OFFSET_EXTENDED:
        number = hvd_stack_bytes_take_uleb(program);
        set_rule(run, number, HVD_STACK_AT,
                 scale(hvd_stack_bytes_take_uleb(program), unit));
        return true;
    case OFFSET_EXTENDED_SIGNED:
        number = hvd_stack_bytes_take_uleb(program);
        set_rule(run, number, HVD_STACK_AT,
                 scale((uint64_t)hvd_stack_bytes_take_sleb(program), unit));
        return true;
    case VALUE_OFFSET:
        number = hvd_stack_bytes_take_uleb(program);
        set_rule(run, number, HVD_STACK_IS,
                 scale(hvd_stack_bytes_take_uleb(program), unit));
        return true;
    case VALUE_OFFSET_SIGNED:
        number = hvd_stack_bytes_take_uleb(program);
        set_rule(run, number, HVD_STACK_IS,
                 scale((uint64_t)hvd_stack_bytes_take_sleb(program), unit));
        return true;
    case RESTORE_EXTENDED:
        restore_rule(run, hvd_stack_bytes_take_uleb(program));
        return true;
    case UNDEFINED:
        set_rule(run, hvd_stack_bytes_take_uleb(program), HVD_STACK_UNDEFINED, 0);
        return true;
    case SAME_VALUE:
        set_rule(run, hvd_stack_bytes_take_uleb(program), HVD_STACK_SAME, 0);
        return true;
    case REGISTER:
        number = hvd_stack_bytes_take_uleb(program);
        set_rule(run, number, HVD_STACK_IN,
                 (int64_t)(hvd_stack_bytes_take_uleb(program) & INT64_MAX));
        return true;
    case REMEMBER_STATE:
        if (run->depth == MOST_REMEMBERED) {
            return false;
        }
        run->remembered[run->depth++] = *run->row;
        return true;
    case RESTORE_STATE:
        return restore_state(run);
    case DEFINE_CFA:
        number = hvd_stack_bytes_take_uleb(program);
        set_cfa(run, number, (int64_t)hvd_stack_bytes_take_uleb(program));
        return true;
    case DEFINE_CFA_SIGNED:
        number = hvd_stack_bytes_take_uleb(program);
        set_cfa(run, number, scale((uint64_t)hvd_stack_bytes_take_sleb(program), unit));
        return true;
    case DEFINE_CFA_REGISTER:
        set_cfa(run, hvd_stack_bytes_take_uleb(program), run->row->cfa_offset);
        return true;
    case DEFINE_CFA_OFFSET:
        run->row->cfa_offset = (int64_t)hvd_stack_bytes_take_uleb(program);
        return true;
    case DEFINE_CFA_OFFSET_SIGNED:
        run->row->cfa_offset = scale((uint64_t)hvd_stack_bytes_take_sleb(program), unit);
        return true;
    case DEFINE_CFA_EXPRESSION:
        run->row->cfa_register = -1;
        run->row->cfa_expression =
            hvd_stack_bytes_split(program, hvd_stack_bytes_take_uleb(program));
        return true;
    case EXPRESSION:
        set_expression(run, program, HVD_STACK_AT_EXPRESSION);
        return true;
    case VALUE_EXPRESSION:
        set_expression(run, program, HVD_STACK_IS_EXPRESSION);
        return true;
    case GNU_ARGUMENTS_SIZE:
        hvd_stack_bytes_take_uleb(program);
        return true;
    default:
        return false;
    }
}

static bool run_one(struct run *run, struct hvd_stack_bytes *program)
{
    const uint8_t code = (uint8_t)hvd_stack_bytes_take(program, 1);
    const uint8_t low = code & LOW_BITS;

    switch (code & HIGH_BITS) {
    case ADVANCE:
        run->location += low * run->common->code_unit;
        return true;
    case OFFSET:
        set_rule(run, low, HVD_STACK_AT,
                 scale(hvd_stack_bytes_take_uleb(program), run->common->data_unit));
        return true;
    case RESTORE:
        restore_rule(run, low);
        return true;
    default:
        return run_extended(run, code, program);
    }
}

/* Runs a program up to the row of the instruction. */
static bool run_program(struct run *run, struct hvd_stack_bytes program)
{
    while (program.left > 0 && run->location <= run->instruction) {
        if (!run_one(run, &program) || program.failed) {
            return false;
        }
    }
    return true;
}

bool hvd_stack_tables_find(const struct hvd_stack_memory *memory, uint64_t index,
                           uint64_t instruction, struct hvd_stack_entry_pair *entries,
                           struct hvd_stack_row *row)
{
    const uint64_t address = search_index(memory, index, instruction);
    struct function function;
    struct common common;
    struct run run = {.common = &common, .instruction = instruction, .row = row};

    if (address == 0 || !read_function(memory, address, entries, &common, &function) ||
        instruction < function.first || instruction >= function.end) {
        return false;
    }
    *row = (struct hvd_stack_row){
        .function = function.first,
        .is_signal = common.is_signal,
        .cfa_register = HVD_STACK_RSP,
    };
    run.location = function.first;
    if (!run_program(&run, common.program)) {
        return false;
    }
    run.initial = *row;
    return run_program(&run, function.program);
}
