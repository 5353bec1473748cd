/* SPDX-License-Identifier: Apache-2.0 */
/* The mappings of this process (/proc/self/maps), and the programs and libraries among
 * them. */
#ifndef HVD_STACK_MAPPINGS_H
#define HVD_STACK_MAPPINGS_H

#include "collectives/stack/memory.h"

struct hvd_stack_mapping {
    uint64_t start, end;
    uint64_t offset; /* in the file */
    uint64_t device, inode; /* 0: no file */
    const char *path; /* "" if there is none; "[vdso]" of the kernel's library */
};

struct hvd_stack_mappings {
    struct hvd_stack_mapping *all; /* [count], by address; owned */
    int count;
    char *text; /* owned; paths lie in it */
};

/* A program or library in memory. */
struct hvd_stack_module {
    const struct hvd_stack_mapping *mapping; /* borrowed */
    uint64_t bias; /* add it to an address in the file to get one in memory */
    uint64_t index; /* of its unwind tables, .eh_frame_hdr, in memory; 0: none */
};

/* Reads the mappings from a text like /proc/self/maps, which it then owns: it must come
 * from malloc. Leaves out lines that are malformed. Returns false if memory is full. */
bool hvd_stack_mappings_parse(struct hvd_stack_mappings *mappings, char *text);

/* Reads those of this process. Returns false if that is not possible. */
bool hvd_stack_mappings_read(struct hvd_stack_mappings *mappings);

void hvd_stack_mappings_finish(struct hvd_stack_mappings *mappings);

/* Returns the mapping that has this address, or NULL. */
const struct hvd_stack_mapping *
hvd_stack_mappings_find(const struct hvd_stack_mappings *mappings, uint64_t address);

/* Finds the module that an address of code lies in. */
bool hvd_stack_mappings_find_module(const struct hvd_stack_mappings *mappings,
                                    const struct hvd_stack_memory *memory,
                                    uint64_t address, struct hvd_stack_module *module);

#endif
