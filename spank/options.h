/* SPDX-License-Identifier: Apache-2.0 */
/* The text after --hvd= as a record. Pure: the same function runs in srun and, as root on
 * hostile text, in slurmstepd. The table of words in options.c is the only one: parser,
 * messages and `srun --help` come from it. */
#ifndef HVD_SPANK_OPTIONS_H
#define HVD_SPANK_OPTIONS_H

#include "gpu_binding/base/error.h"
#include "spank/word_table.h"

/* The longest text that --hvd= accepts; longer is refused unread. */
#define HVD_SPANK_OPTIONS_TEXT_MAX 1024

/* Texts with all words that --hvd= knows, and with their help, fit in here. */
#define HVD_SPANK_OPTIONS_LIST_BYTES 256
#define HVD_SPANK_OPTIONS_HELP_BYTES 2048

/* What the user asked for. Flags are int: the table of words fills them by offset. Names
 * of files are as typed, not yet looked at, and consist of letters, digits, spaces and
 * _=:.-/+@ alone. */
struct hvd_spank_options {
    int is_on;
    int is_verbose;
    int bind; /* enum hvd_bind_mode */
    int keep_gpus; /* leave the visibility of GPUs to Slurm */
    int keep_tasks; /* leave the number of tasks to Slurm */
    int keep_nic; /* leave the choice of network cards to UCX */
    int has_all_ranks; /* in the timeline */
    int is_elastic; /* a rank that fails does not end the others */
    int min_ranks; /* fewer do not train; 0: not given */
    int max_ranks; /* 0: not given */
    int reset_limit; /* how often ranks may start again; -1: not given */
    char meet[HVD_SPANK_FILE_MAX + 1]; /* steps with this file are one job; or empty */
    char timeline[HVD_SPANK_FILE_MAX + 1]; /* a file; or empty */
    char report[HVD_SPANK_FILE_MAX + 1]; /* a file, "1" for the terminal, or empty */
};

/* Writes all words, as messages show them: "on, off, ...". */
void hvd_spank_options_list(char text[HVD_SPANK_OPTIONS_LIST_BYTES]);

/* Writes what `srun --help` shows about --hvd, with every word explained. */
void hvd_spank_options_help(char text[HVD_SPANK_OPTIONS_HELP_BYTES]);

/* The word that chooses a mode (enum hvd_bind_mode): "bind=cores"; "bind=none" for
 * HVD_BIND_AUTO. */
const char *hvd_spank_options_bind_word(int mode);

/* Parses the text of --hvd; NULL, "" and Slurm's "(null)" mean that no text was given.
 * A word given twice counts as its last mention. Returns 0 and writes *options whole, or
 * returns HVD_ERR_ARG, says in err what is wrong and what is known, and leaves *options
 * alone. The text in err is safe to print whatever the user sent. */
int hvd_spank_options_parse(const char *text, struct hvd_spank_options *options,
                            struct hvd_error *err);

#endif
