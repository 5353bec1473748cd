/* SPDX-License-Identifier: Apache-2.0 */
/* Replaces words that hvd-info --bug-report must not show: the home directory and the
 * name of the user, and values of variables that it leaves out. */
#ifndef HVD_INFO_WORDS_H
#define HVD_INFO_WORDS_H

#include <stdio.h>

#include "gpu_binding/base/error.h"

struct hvd_info_words;

/* Takes the words from the variables of `environment`, which is like environ and stays
 * until hvd_info_words_destroy. Returns NULL if there is no memory. */
struct hvd_info_words *hvd_info_words_create(char *const *environment);

/* Prints the text with a name in place of each word. */
void hvd_info_words_print(const struct hvd_info_words *words, const char *text,
                          FILE *out);

void hvd_info_words_destroy(struct hvd_info_words *words);

#endif
