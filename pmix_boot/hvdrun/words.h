/* SPDX-License-Identifier: Apache-2.0 */
/* A list of words that ends with NULL, as exec takes arguments and environments. */
#ifndef HVDRUN_WORDS_H
#define HVDRUN_WORDS_H

#include "gpu_binding/base/attr.h"
#include "gpu_binding/base/error.h"

/* Zeroed: empty. */
struct hvdrun_words {
    char **items; /* owned; ends with NULL unless nothing was ever added */
    int count;
};

/* Appends a word in printf format. */
int hvdrun_words_add(struct hvdrun_words *words, struct hvd_error *err,
                     const char *format, ...) HVD_PRINTF(3, 4);

/* Appends copies of all items of a list that ends with NULL. */
int hvdrun_words_add_all(struct hvdrun_words *words, const char *const *items,
                         struct hvd_error *err);

/* Frees and empties. */
void hvdrun_words_finish(struct hvdrun_words *words);

#endif
