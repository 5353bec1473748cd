/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers in Slurm's texts: alone, one per node ("4(x2),3"), and of GPUs ("gpu:a100:4").
 * Pure. */
#ifndef HVD_SPANK_SLURM_NUMBERS_H
#define HVD_SPANK_SLURM_NUMBERS_H

#include <stdbool.h>

/* The whole text as a number from 1 to 100,000, which is more than any cluster has; else
 * 0. */
int hvd_spank_number_of(const char *text);

/* A run of nodes with the same number. */
struct hvd_spank_count_run {
    int value;
    int nodes;
};

/* Reads the run at *cursor and moves *cursor behind it. False at the end of the text and
 * where the text is not of this form; then **cursor is '\0' only at a proper end. */
bool hvd_spank_count_next(const char **cursor, struct hvd_spank_count_run *run);

/* The least number in text, or 0 when text is NULL or not of this form. */
int hvd_spank_count_least(const char *text);

/* The number at the end of Slurm's text for a count of GPUs: "4", "a100:4", "gres:gpu:4",
 * "gpu:a100:2(S:0-1)"; 1 for "gpu"; 0 when the text names something else, or several. */
int hvd_spank_gres_count(const char *text);

#endif
