/* SPDX-License-Identifier: Apache-2.0 */
/* The file format of a table of algorithms: sections for shapes of jobs. Pure.
 *
 *   # a comment, up to the end of the line
 *   [nodes=1 ranks=4]             ranks of the node that has the most; ranges: nodes=2-16
 *   measured 2 cores, hvd 0.1.0   where the section comes from, in any words
 *   allreduce      0  ll                    collective, smallest size in bytes, algorithm
 *   allreduce     25  one_shot
 *   allreduce    24K  two_shot chunk=128K   options (see struct hvd_algorithm_row):
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
    /* the smallest and the largest shape that the section is for */
    struct hvd_job_shape least;
    struct hvd_job_shape most;
    char measured[HVD_MEASURED_BYTES];
    struct hvd_algorithm_choices choices;
    int line; /* number of the section's first line */
};

struct hvd_algorithm_table {
    char *name; /* file name, for errors */
    struct hvd_algorithm_section *sections; /* [count] */
    int count;
};

/* Parses a whole text. Fails with HVD_ERR_ARG and a text that has the name, the line,
 * what was expected and what was found; or with HVD_ERR_NOMEM. The caller owns *out. */
int hvd_algorithm_table_parse(const char *name, const char *text,
                              struct hvd_algorithm_table **out, struct hvd_error *err);
void hvd_algorithm_table_destroy(struct hvd_algorithm_table *table); /* NULL is fine */

/* Finds the section for a shape; NULL if there is none, or if table is NULL. */
const struct hvd_algorithm_section *
hvd_algorithm_table_find(const struct hvd_algorithm_table *table,
                         struct hvd_job_shape shape);

/* Fills in the choices for a shape, with the built-in rows where the table has none. */
void hvd_algorithm_table_choose(const struct hvd_algorithm_table *table,
                                struct hvd_job_shape shape,
                                struct hvd_algorithm_choices *choices);

/* Returns a number that is the same for tables that choose alike; 0 for NULL. */
uint64_t hvd_algorithm_table_digest(const struct hvd_algorithm_table *table);

/* Writes a section in the format that parse reads. */
void hvd_algorithm_section_write(const struct hvd_algorithm_section *section, FILE *out);

/* Writes a size exactly in the shortest way, as "64K" or "1500". Returns text. */
const char *hvd_algorithm_size_write(int64_t bytes, char *text, size_t room);

#endif
