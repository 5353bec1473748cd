/* SPDX-License-Identifier: Apache-2.0 */
/* A table of the words that a text may consist of, each setting one int of a record. */
#ifndef HVD_SPANK_WORDS_H
#define HVD_SPANK_WORDS_H

#include <stdbool.h>
#include <stddef.h>

struct hvd_word {
    const char *text;
    size_t field; /* offset of an int in the record */
    int value;
};

/* Looks the first length bytes of text up and sets the field of record that the word names.
 * False, and record untouched, when the table has no such word. */
bool hvd_word_apply(const struct hvd_word *words, size_t count, const char *text,
                    size_t length, void *record);

/* Writes the words for messages: those with the same
 * "key=" in a row become one, as key=a|b, and ", " stands between. Cut where bytes end;
 * returns the bytes used. */
size_t hvd_words_list(const struct hvd_word *words, size_t count, char *text,
                      size_t bytes);

#endif
