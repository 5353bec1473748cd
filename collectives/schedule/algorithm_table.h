/* SPDX-License-Identifier: Apache-2.0 */
/* A table of algorithms as people read and write it: sections for shapes of jobs. Pure.
 *
 *   # from # to the end of a line: a comment
 *   [nodes=1 ranks=4]             of the node that has the most; also nodes=2-16
 *   measured 2 cores, hvd 0.1.0   where the section comes from, in any words
 *   allreduce      0  ll                    collective, bytes from which on, algorithm
 *   allreduce     25  one_shot
 *   allreduce    24K  two_shot chunk=128K   options, see struct hvd_algorithm_row:
 *   multilevel levels=2                     chunk=BYTES, window=BYTES, lanes=one
 *
 * The first section that fits a job applies. The built-in table applies to collectives
 * that the section does not list. */
#ifndef HVD_ALGORITHM_TABLE_H
#define HVD_ALGORITHM_TABLE_H

#include <stdio.h>

#include "collectives/schedule/algorithm.h"
#include "gpu_binding/base/error.h"

enum {
    HVD_MEASURED_BYTES = 240
};

struct hvd_algorithm_section {
    struct hvd_job_shape least; /* the shapes it is for */
    struct hvd_job_shape most;
    char measured[HVD_MEASURED_BYTES];
    struct hvd_algorithm_choices choices;
    int line; /* of its head */
};

struct hvd_algorithm_table {
    char *name; /* of the file */
    struct hvd_algorithm_section *sections; /* [count] */
    int count;
};

/* Reads a whole text. HVD_ERR_ARG with name, line, what was expected and what was found;
 * or HVD_ERR_NOMEM. The caller owns *out. */
int hvd_algorithm_table_parse(const char *name, const char *text,
                              struct hvd_algorithm_table **out, struct hvd_error *err);
void hvd_algorithm_table_destroy(struct hvd_algorithm_table *table); /* NULL is fine */

/* A table NULL is one without sections. find: NULL when there is none for the shape. */
const struct hvd_algorithm_section *
hvd_algorithm_table_find(const struct hvd_algorithm_table *table,
                         struct hvd_job_shape shape);

/* The choices for a shape, complete. */
void hvd_algorithm_table_choose(const struct hvd_algorithm_table *table,
                                struct hvd_job_shape shape,
                                struct hvd_algorithm_choices *choices);

/* The same number for tables that choose alike; 0 for NULL. */
uint64_t hvd_algorithm_table_digest(const struct hvd_algorithm_table *table);

/* A section as parse reads it. */
void hvd_algorithm_section_write(const struct hvd_algorithm_section *section, FILE *out);

/* "64K", "1500": the shortest way to write a size exactly. Returns text. */
const char *hvd_algorithm_size_write(int64_t bytes, char *text, size_t room);

#endif
