/* SPDX-License-Identifier: Apache-2.0 */
/* Parses a text by a table of the words that it may consist of. The list of words in
 * messages and the help come from the same table. Pure. */
#ifndef HVD_SPANK_WORD_TABLE_H
#define HVD_SPANK_WORD_TABLE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "gpu_binding/base/error.h"

/* The longest file name, without its terminating zero. */
#define HVD_SPANK_FILE_MAX 255

/* The longest list of words, without its terminating zero. */
#define HVD_SPANK_LIST_MAX 127

enum hvd_spank_word_kind {
    HVD_SPANK_WORD_CHOICE, /* one fixed word; sets the field, an int, to `number` */
    HVD_SPANK_WORD_NUMBER, /* KEY=N; the field is an int; N is from `number` to `most` */
    HVD_SPANK_WORD_FILE, /* KEY=FILE; the field has HVD_SPANK_FILE_MAX + 1 characters */
    HVD_SPANK_WORD_DEFAULT_FILE, /* KEY or KEY=FILE; KEY alone writes "1" */
    /* KEY=/PATH, without ':', or KEY= for none; the field has PATH_MAX characters */
    HVD_SPANK_WORD_PATH,
    /* KEY=WORD,... or KEY= for none; the field has HVD_SPANK_LIST_MAX + 1 characters */
    HVD_SPANK_WORD_LIST,
};

struct hvd_spank_word {
    const char *text; /* "bind=cores", or a key: "min" */
    enum hvd_spank_word_kind kind;
    size_t field; /* offset of the field in the record */
    int number;
    int most;
    const char *value; /* the placeholder for the value of a key in messages: "N" */
    const char *help; /* NULL: the help of the next word explains this one, too */
    /* another spelling of a choice, which no list shows: "bind=core"; NULL: none */
    const char *also;
};

struct hvd_spank_word_table {
    const char *origin; /* where the words are written: "--hvd"; begins every message */
    const struct hvd_spank_word *words;
    size_t count;
};

/* Parses one word, the first length bytes of text, into the record. Returns 0, or
 * HVD_ERR_ARG with a message that says what is expected; the record is then unchanged. */
int hvd_spank_word_parse(const struct hvd_spank_word_table *table, const char *text,
                         size_t length, void *record, struct hvd_error *err);

/* Returns whether the text is a word of the table, or a key: "bind=cores", "bind". */
bool hvd_spank_word_is_known(const struct hvd_spank_word_table *table, const char *text,
                             size_t length);

/* Returns the word of the table that this text selects by another spelling, or NULL. */
const char *hvd_spank_word_spelling(const struct hvd_spank_word_table *table,
                                    const char *text, size_t length);

/* Writes all words, separated by ", ": "on, off, bind=socket|cores|none, min=N". The text
 * is cut if it does not fit. */
void hvd_spank_word_list(const struct hvd_spank_word_table *table, char *text,
                         size_t bytes);

/* Writes all words with their help: "on, off (switch hvd on or off); min=N (...)". Slurm
 * breaks the text into lines. The text is cut if it does not fit. */
void hvd_spank_word_help(const struct hvd_spank_word_table *table, char *text,
                         size_t bytes);

#endif
