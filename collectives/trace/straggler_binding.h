/* SPDX-License-Identifier: Apache-2.0 */
/* Where a rank runs, for the page of the straggler report. */
#ifndef HVD_STRAGGLER_BINDING_H
#define HVD_STRAGGLER_BINDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    /* Begins the message of a binding. Messages with windows begin with a priority, which
     * is never negative. */
    HVD_STRAGGLER_BINDING = -1,
};

/* Also the message that carries it up the tree. */
struct hvd_straggler_binding {
    int32_t mark; /* HVD_STRAGGLER_BINDING */
    int32_t rank;
    char cpus[104]; /* a list such as "0-3,8"; a longer one ends with "..." */
    char gpu[24]; /* its index in CUDA_VISIBLE_DEVICES; "": none */
    char nic[64]; /* the network cards; "": not chosen */
};

/* Finds where the calling thread may run, and what the launcher has given the process. */
void hvd_straggler_binding_find(int rank, struct hvd_straggler_binding *binding);

/* Writes the CPUs below `count` for which has_cpu is true as a list. Returns text. */
char *hvd_straggler_cpu_list(const bool *has_cpu, int count, char *text, size_t size);

/* Whether a message is a binding; copies it. False if it is something else or malformed
 * in a job of `size` ranks. */
bool hvd_straggler_binding_parse(const void *payload, size_t bytes, int size,
                                 struct hvd_straggler_binding *binding);

#endif
