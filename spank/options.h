/* SPDX-License-Identifier: Apache-2.0 */
/* The text after --hvd= as a record. Pure: the same function runs in srun and, as root on
 * hostile text, in slurmstepd. */
#ifndef HVD_SPANK_OPTIONS_H
#define HVD_SPANK_OPTIONS_H

#include "gpu_binding/base/error.h"

/* The longest text that --hvd= accepts; longer is refused unread. */
#define HVD_OPTION_TEXT_MAX 1024

/* The longest file name in it. */
#define HVD_OPTION_FILE_MAX 255

/* A text with all words that --hvd= knows fits in here. */
#define HVD_OPTION_LIST_BYTES 256

/* What the user asked for. Flags are int: a table of words fills them by offset. Names of
 * files are as typed, not yet looked at, and consist of letters, digits, spaces and
 * _=:.-/+@ alone. */
struct hvd_options {
    int is_on;
    int is_verbose;
    int bind; /* enum hvd_bind_mode */
    int keep_gpus; /* leave the visibility of GPUs to Slurm */
    int keep_tasks; /* leave the number of tasks to Slurm */
    int keep_nic; /* leave the choice of network cards to UCX */
    int has_all_ranks; /* in the timeline */
    int is_elastic; /* a rank that fails does not end the others */
    int min_ranks; /* fewer do not train; 0: not said; so max_ranks */
    int max_ranks;
    int resets; /* how often ranks may begin anew, plus 1; 0: not said */
    char
        meet[HVD_OPTION_FILE_MAX + 1]; /* steps with this file are one job; empty: none */
    char timeline[HVD_OPTION_FILE_MAX + 1]; /* a file; empty: none */
    char report[HVD_OPTION_FILE_MAX +
                1]; /* a file, or "1" for the terminal; empty: none */
};

/* Writes every word that is known, as help and messages show them: "on, off, ...". */
void hvd_options_list(char text[HVD_OPTION_LIST_BYTES]);

/* Parses the text of --hvd; NULL, "" and Slurm's "(null)" mean that no text was given.
 * A word given twice counts as its last mention. Returns 0 and writes *options whole, or
 * returns HVD_ERR_ARG, says in err what is wrong and what is known, and leaves *options
 * alone. The text in err is safe to print whatever the user sent. */
int hvd_options_parse(const char *text, struct hvd_options *options,
                      struct hvd_error *err);

#endif
