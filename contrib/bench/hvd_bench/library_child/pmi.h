/* SPDX-License-Identifier: Apache-2.0 */
/* The server's side of PMI 1, the lines by which MPICH and its kin find each other: what is put by
 * one process, all get after a barrier. It is all that a launcher of theirs would do for us. */
#ifndef HVD_BENCH_PMI_H
#define HVD_BENCH_PMI_H

#include <stddef.h>

#include "gpu_binding/base/error.h"

enum {
    BENCH_PMI_LINE = 2048
};

struct bench_pmi;

/* layout: ranks of each node, "2,1", in the order of ranks. NULL when there is no memory or that is
 * no layout. */
struct bench_pmi *bench_pmi_create(const char *layout);
void bench_pmi_destroy(struct bench_pmi *pmi); /* NULL is fine */

int bench_pmi_size(const struct bench_pmi *pmi); /* ranks of the layout */

/* Who gets the answer. */
enum bench_pmi_to {
    BENCH_PMI_NOBODY,
    BENCH_PMI_SENDER,
    BENCH_PMI_ALL
};

/* Writes the answer to a line; neither has its newline. */
enum bench_pmi_to bench_pmi_answer(struct bench_pmi *pmi, const char *line,
                                   char answer[BENCH_PMI_LINE]);

#endif
