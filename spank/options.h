/* SPDX-License-Identifier: Apache-2.0 */
/* Parses the text after --hvd= into a record. Pure: the same function runs in srun and,
 * as root on hostile text, in slurmstepd. The parser, the messages and `srun --help` all
 * use the table of words in options.c. */
#ifndef HVD_SPANK_OPTIONS_H
#define HVD_SPANK_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "gpu_binding/base/error.h"
#include "spank/word_table.h"

/* The longest text that --hvd= accepts; a longer one is rejected without being parsed. */
#define HVD_SPANK_OPTIONS_TEXT_MAX 1024

/* Buffer sizes for the list of all words of --hvd, and for its help text. */
#define HVD_SPANK_OPTIONS_LIST_BYTES 288
#define HVD_SPANK_OPTIONS_HELP_BYTES 2048

/* How many tasks a node gets, if the user gives no number. */
enum hvd_spank_tasks {
    HVD_SPANK_TASKS_AUTO, /* one per GPU; one per node for a program such as torchrun */
    HVD_SPANK_TASKS_KEEP, /* as many as Slurm chooses */
    HVD_SPANK_TASKS_NODE, /* one, which starts the ranks of its node */
};

/* The options that the user chose. Flags are int because the table of words fills them by
 * offset. File names are as typed: their only guarantee is that they consist of letters,
 * digits, spaces and _=:.-/+@. */
struct hvd_spank_options {
    int is_on;
    int is_verbose;
    int bind; /* enum hvd_bind_mode */
    int keep_gpus; /* leave the visibility of GPUs to Slurm */
    int tasks; /* enum hvd_spank_tasks */
    int keep_nic; /* leave the choice of network cards to UCX */
    int has_all_ranks; /* the timeline shows all ranks, not only rank 0 */
    int has_requeue; /* SIGUSR1 makes the ranks stop and the job start again */
    int is_elastic; /* a rank that fails does not end the others */
    int min_ranks; /* the fewest ranks that train; 0: not given */
    int max_ranks; /* the most ranks; 0: not given */
    int spares; /* tasks that wait until they replace failed ranks; 0: none */
    int reset_limit; /* how often the job may start again; -1: not given */
    /* all steps that name this file form one job; empty: not given */
    char meet[HVD_SPANK_FILE_MAX + 1];
    char timeline[HVD_SPANK_FILE_MAX + 1]; /* a file; or empty */
    char metrics[HVD_SPANK_FILE_MAX + 1]; /* a folder; or empty */
    char report[HVD_SPANK_FILE_MAX + 1]; /* a file, "1" for the terminal, or empty */
    char nccl[HVD_SPANK_FILE_MAX + 1]; /* a folder; or empty */
};

/* Writes the list of all words for messages: "on, off, ...". */
void hvd_spank_options_list(char text[HVD_SPANK_OPTIONS_LIST_BYTES]);

/* Writes the text about --hvd for `srun --help`, which explains every word. */
void hvd_spank_options_help(char text[HVD_SPANK_OPTIONS_HELP_BYTES]);

/* Returns whether the text is a word of --hvd, or a key: "bind=cores", "bind". */
bool hvd_spank_options_know(const char *text, size_t length);

/* Returns the word of --hvd that this text is another spelling of, such as "bind=cores"
 * for "bind=core"; NULL if it is none. */
const char *hvd_spank_options_spelling(const char *text, size_t length);

/* Parses the text of --hvd; NULL, "" and Slurm's "(null)" mean that no text was given. If
 * a word occurs twice, the last one counts. Returns 0 and fills all of *options, or
 * returns HVD_ERR_ARG with the reason in err and leaves *options unchanged. The text in
 * err is safe to print even if the user is hostile. */
int hvd_spank_options_parse(const char *text, struct hvd_spank_options *options,
                            struct hvd_error *err);

/* Parses further words into options. Returns 0, or HVD_ERR_ARG and leaves *options
 * unchanged; also if the words contradict those that were parsed before. */
int hvd_spank_options_add(const char *text, struct hvd_spank_options *options,
                          struct hvd_error *err);

#endif
