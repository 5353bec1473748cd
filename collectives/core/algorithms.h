/* SPDX-License-Identifier: Apache-2.0 */
/* The table of algorithms: read before the ranks know each other, compared as soon as
 * they do. A rank that cannot read its own says so in its card, so that all ranks end at
 * once and none waits for it. */
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

/* setting: a file, or "builtin"; NULL: where algorithm_file.h looks. */
void hvd_algorithms_read(struct hvd_algorithms *algorithms, const char *setting);
void hvd_algorithms_finish(struct hvd_algorithms *algorithms);

/* NULL: the built-in table. Borrowed until finish. */
static inline struct hvd_algorithm_table *
hvd_algorithms_table(const struct hvd_algorithms *algorithms)
{
    return algorithms->table;
}

/* Of the table; HVD_CARD_NO_ALGORITHMS when it cannot be read. */
uint64_t hvd_algorithms_digest(const struct hvd_algorithms *algorithms);

/* HVD_ERR_MISMATCH, on all ranks, where one has another table than rank 0. */
int hvd_algorithms_compare(const struct hvd_algorithms *algorithms,
                           const struct hvd_boot *boot, struct hvd_error *err);

#endif
