/* SPDX-License-Identifier: Apache-2.0 */
/* The table of algorithms. Each rank reads it before the ranks know each other, and
 * compares it as soon as they do. A rank that cannot read its table says so in its card,
 * so that all ranks fail at once instead of waiting for it. */
#ifndef HVD_ALGORITHMS_H
#define HVD_ALGORITHMS_H

#include <stdint.h>

#include "gpu_binding/base/error.h"

struct hvd_boot;
struct hvd_algorithm_table;

struct hvd_algorithms {
    struct hvd_algorithm_table *table; /* owned; NULL: the built-in table */
    struct hvd_error failure; /* why the file cannot be used; status 0: it can */
};

/* Reads the table. setting: a file, or "builtin"; NULL: the paths that algorithm_file.h
 * searches. */
void hvd_algorithms_read(struct hvd_algorithms *algorithms, const char *setting);
void hvd_algorithms_finish(struct hvd_algorithms *algorithms);

/* Returns the table, borrowed until finish; NULL: the built-in table. */
static inline struct hvd_algorithm_table *
hvd_algorithms_table(const struct hvd_algorithms *algorithms)
{
    return algorithms->table;
}

/* Returns the digest of the table, or HVD_CARD_NO_ALGORITHMS if the table cannot be
 * read. */
uint64_t hvd_algorithms_digest(const struct hvd_algorithms *algorithms);

/* Returns HVD_ERR_MISMATCH on all ranks if the table of any rank differs from that of
 * rank 0. */
int hvd_algorithms_compare(const struct hvd_algorithms *algorithms,
                           const struct hvd_boot *boot, struct hvd_error *err);

#endif
