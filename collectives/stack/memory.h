/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that a walk of a stack reads: that of this process, a file, or a copy. A read of
 * an address that does not exist fails; it never raises a signal. */
#ifndef HVD_STACK_MEMORY_H
#define HVD_STACK_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Addresses within the copy are read from it, all others from the descriptor. */
struct hvd_stack_memory {
    int fd; /* /proc/self/mem, or a file, whose offsets are the addresses; -1: none */
    uint64_t copy_address;
    size_t copy_bytes;
    const uint8_t *copy; /* [copy_bytes], borrowed */
};

/* Reads all bytes, or fails. */
bool hvd_stack_memory_read(const struct hvd_stack_memory *memory, uint64_t address,
                           void *to, size_t bytes);

/* Reads up to `most` bytes. Returns their number; 0: none. */
size_t hvd_stack_memory_read_some(const struct hvd_stack_memory *memory, uint64_t address,
                                  void *to, size_t most);

#endif
