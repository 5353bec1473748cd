/* SPDX-License-Identifier: Apache-2.0 */
/* Symbol tables of ELF files, unwind tables with code and a stack, and texts such as
 * /proc/self/maps. The first byte chooses among them. */
#include <stdlib.h>
#include <string.h>

#include "collectives/stack/mappings.h"
#include "collectives/stack/symbols.h"
#include "collectives/stack/unwind.h"
#include "tests/fuzz/fuzz.h"

enum {
    BASE = 0x10000, /* where the memory of an input lies */
    MOST_STEPS = 64,
};

static void find_symbol(const struct hvd_stack_memory *file, uint64_t address)
{
    char name[20];

    memset(name, 'x', sizeof(name));
    if (hvd_stack_symbols_find(file, address, name, sizeof(name)) &&
        (memchr(name, '\0', sizeof(name)) == NULL || name[0] == '\0')) {
        fuzz_fail("a name that is found has letters and an end");
    }
}

static void walk(struct hvd_stack_memory memory, struct fuzz_input *input)
{
    struct hvd_stack_registers registers = {0};
    const uint64_t index = BASE + fuzz_byte(input);

    memory.copy_address = BASE;
    hvd_stack_registers_set(&registers, HVD_STACK_RSP, BASE + fuzz_byte(input) * 8u);
    hvd_stack_registers_set(&registers, HVD_STACK_PC, BASE + fuzz_byte(input) * 4u);
    for (int i = 0; i < MOST_STEPS; i++) {
        const struct hvd_stack_registers before = registers;

        if (hvd_stack_unwind(&memory, index, &registers) != HVD_STACK_STEPPED) {
            return;
        }
        if (!hvd_stack_registers_has(&registers, HVD_STACK_PC) ||
            !hvd_stack_registers_has(&registers, HVD_STACK_RSP)) {
            fuzz_fail("a step leads to a known place");
        }
        if (memcmp(&before, &registers, sizeof(before)) == 0) {
            return;
        }
    }
}

static void parse_mappings(struct hvd_stack_memory memory, struct fuzz_input *input)
{
    struct hvd_stack_mappings mappings;
    struct hvd_stack_module module;

    if (!hvd_stack_mappings_parse(&mappings, fuzz_text(input, input->bytes / 2))) {
        abort();
    }
    memory.copy_address = BASE;
    for (int i = 0; i < mappings.count; i++) {
        fuzz_touch(mappings.all[i].path, strlen(mappings.all[i].path));
        hvd_stack_mappings_find_module(&mappings, &memory, mappings.all[i].start,
                                       &module);
    }
    hvd_stack_mappings_finish(&mappings);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input input = {data, size};
    const uint8_t kind = fuzz_byte(&input) % 3;
    struct fuzz_input rest = input;
    size_t bytes;
    void *copy = fuzz_copy(&rest, rest.bytes, &bytes);
    const struct hvd_stack_memory memory = {.fd = -1, .copy_bytes = bytes, .copy = copy};

    if (kind == 0) {
        find_symbol(&memory, bytes > 0 ? data[size - 1] * 16u : 0);
    } else if (kind == 1) {
        walk(memory, &input);
    } else {
        parse_mappings(memory, &input);
    }
    free(copy);
    return 0;
}
