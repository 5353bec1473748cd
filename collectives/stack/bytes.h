/* SPDX-License-Identifier: Apache-2.0 */
/* Takes numbers of DWARF from the front of some bytes. Past their end, each function
 * returns 0 and sets `failed`. */
#ifndef HVD_STACK_BYTES_H
#define HVD_STACK_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hvd_stack_bytes {
    const uint8_t *at;
    size_t left;
    uint64_t address; /* of *at in memory */
    bool failed;
};

/* Takes a little-endian number of 1 to 8 bytes. */
uint64_t hvd_stack_bytes_take(struct hvd_stack_bytes *bytes, size_t size);

uint64_t hvd_stack_bytes_take_uleb(struct hvd_stack_bytes *bytes);
int64_t hvd_stack_bytes_take_sleb(struct hvd_stack_bytes *bytes);

/* Takes the first `size` bytes as a part of their own. */
struct hvd_stack_bytes hvd_stack_bytes_split(struct hvd_stack_bytes *bytes,
                                             uint64_t size);

/* Takes an address that is encoded as `encoding` (DW_EH_PE_*) says. base: the address
 * that DW_EH_PE_datarel counts from. */
uint64_t hvd_stack_bytes_take_pointer(struct hvd_stack_bytes *bytes, uint8_t encoding,
                                      uint64_t base);

#endif
