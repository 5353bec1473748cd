/* SPDX-License-Identifier: Apache-2.0 */
/* Texts as JSON strings: what is not UTF-8 becomes U+FFFD. Pure. */
#ifndef HVD_JSON_H
#define HVD_JSON_H

#include <stddef.h>
#include <stdio.h>

/* Writes text as the inside of a JSON string to out, which has room for capacity bytes,
 * and '\0'. A text that is too long ends in "...". Returns the length. */
size_t hvd_json_escape(const char *text, char *out, size_t capacity);

/* Writes the whole string, with its quotes. */
void hvd_json_print(const char *text, FILE *out);

#endif
