/* SPDX-License-Identifier: Apache-2.0 */
/* A table of the words that a text may consist of. The parser, the list in messages and
 * the help all come from it. Pure. */
#ifndef HVD_SPANK_WORD_TABLE_H
#define HVD_SPANK_WORD_TABLE_H

#include <limits.h>
#include <stddef.h>

#include "gpu_binding/base/error.h"

/* The longest name of a file, without its closing zero. */
#define HVD_SPANK_FILE_MAX 255

enum hvd_spank_word_kind {
    HVD_SPANK_WORD_CHOICE, /* the whole word; the field is an int that becomes number */
    HVD_SPANK_WORD_NUMBER, /* KEY=N; the field is an int; N is from number to most */
    HVD_SPANK_WORD_FILE, /* KEY=FILE; the field has HVD_SPANK_FILE_MAX + 1 characters */
    HVD_SPANK_WORD_DEFAULT_FILE, /* KEY or KEY=FILE; KEY alone writes "1" */
    /* KEY=/PATH, without ':', or KEY= for none; PATH_MAX characters */
    HVD_SPANK_WORD_PATH,
};

struct hvd_spank_word {
    const char *text; /* "bind=cores", or a key: "min" */
    enum hvd_spank_word_kind kind;
    size_t field; /* offset in the record */
    int number;
    int most;
    const char *value; /* what stands for the value of a key: "N" */
    const char *help; /* NULL: the next word explains this one, too */
};

struct hvd_spank_word_table {
    const char *origin; /* where the words are written: "--hvd"; begins every message */
    const struct hvd_spank_word *words;
    size_t count;
};

/* Reads one word, the first length bytes of text, into the record. Returns 0, or
 * HVD_ERR_ARG with a message that says what is expected; the record is then untouched. */
int hvd_spank_word_parse(const struct hvd_spank_word_table *table, const char *text,
                         size_t length, void *record, struct hvd_error *err);

/* Writes all words, with ", " between: "on, off, bind=socket|cores|none, min=N". Cut
 * where bytes end. */
void hvd_spank_word_list(const struct hvd_spank_word_table *table, char *text,
                         size_t bytes);

/* Writes all words with their help: "on, off (hvd for this step, or not); min=N (...)".
 * Slurm breaks the text into lines. Cut where bytes end. */
void hvd_spank_word_help(const struct hvd_spank_word_table *table, char *text,
                         size_t bytes);

#endif
