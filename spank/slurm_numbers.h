/* SPDX-License-Identifier: Apache-2.0 */
/* Parses the numbers in Slurm's texts: a single number, a list with one number per node
 * ("4(x2),3"), and a count of GPUs ("gpu:a100:4"). Pure. */
#ifndef HVD_SPANK_SLURM_NUMBERS_H
#define HVD_SPANK_SLURM_NUMBERS_H

#include <stdbool.h>

/* Parses the whole text as a number from 1 to 100,000, which is more than any cluster
 * has. Returns 0 for anything else. */
int hvd_spank_number_of(const char *text);

/* Consecutive nodes with the same number. */
struct hvd_spank_count_run {
    int value;
    int nodes;
};

/* Reads the run at *cursor and moves *cursor past it. Returns false at the end of the
 * text, where **cursor is '\0', and at malformed text, where **cursor is not '\0'. */
bool hvd_spank_count_next(const char **cursor, struct hvd_spank_count_run *run);

/* Returns the smallest number in text; 0 if text is NULL or malformed. */
int hvd_spank_count_least(const char *text);

/* Returns the number at the end of Slurm's text for a count of GPUs: "4", "a100:4",
 * "gres:gpu:4", "gpu:a100:2(S:0-1)"; 1 for "gpu"; 0 if the text is anything else, or
 * lists several resources. */
int hvd_spank_gres_count(const char *text);

#endif
