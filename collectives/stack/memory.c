/* SPDX-License-Identifier: Apache-2.0 */
#include "collectives/stack/memory.h"

#include <string.h>
#include <unistd.h>

static bool is_in_copy(const struct hvd_stack_memory *memory, uint64_t address)
{
    return address >= memory->copy_address &&
           address - memory->copy_address < memory->copy_bytes;
}

size_t hvd_stack_memory_read_some(const struct hvd_stack_memory *memory, uint64_t address,
                                  void *to, size_t most)
{
    if (is_in_copy(memory, address)) {
        const size_t offset = (size_t)(address - memory->copy_address);
        const size_t left = memory->copy_bytes - offset;
        const size_t bytes = most < left ? most : left;

        memcpy(to, memory->copy + offset, bytes);
        return bytes;
    }
    if (memory->fd < 0 || address > INT64_MAX) {
        return 0;
    }
    const ssize_t got = pread(memory->fd, to, most, (off_t)address);

    return got > 0 ? (size_t)got : 0;
}

bool hvd_stack_memory_read(const struct hvd_stack_memory *memory, uint64_t address,
                           void *to, size_t bytes)
{
    return hvd_stack_memory_read_some(memory, address, to, bytes) == bytes;
}
