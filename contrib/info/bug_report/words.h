/* SPDX-License-Identifier: Apache-2.0 */
/* Replaces words that hvd-info --bug-report must not show: the user's name, the home
 * directory, and values of variables that may be secret. */
#ifndef HVD_INFO_WORDS_H
#define HVD_INFO_WORDS_H

#include <stdio.h>

#include "gpu_binding/base/error.h"

struct hvd_info_words;

/* Finds the words in the variables of `environment`, an array like environ, which must
 * stay valid until hvd_info_words_destroy. Returns NULL if there is no memory. */
struct hvd_info_words *hvd_info_words_create(char *const *environment);

/* Prints the text, with a name in place of each such word. */
void hvd_info_words_print(const struct hvd_info_words *words, const char *text,
                          FILE *out);

void hvd_info_words_destroy(struct hvd_info_words *words);

#endif
