/* SPDX-License-Identifier: Apache-2.0 */
/* Writes texts as JSON strings; bytes that are not UTF-8 become U+FFFD. Pure. */
#ifndef HVD_JSON_H
#define HVD_JSON_H

#include <stddef.h>
#include <stdio.h>

/* Writes text and '\0' to out, as the inside of a JSON string. out has room for capacity
 * bytes; a text that is too long is cut and ends in "...". Returns the length. */
size_t hvd_json_escape(const char *text, char *out, size_t capacity);

/* Writes the whole string, with its quotes. */
void hvd_json_print(const char *text, FILE *out);

#endif
