/* SPDX-License-Identifier: Apache-2.0 */
/* Checks whether a text is JSON, as strictly as RFC 8259, for tests of programs that
 * write it. */
#ifndef HVD_TEST_JSON_CHECK_H
#define HVD_TEST_JSON_CHECK_H

#include <stdbool.h>
#include <stddef.h>

/* Whether the text is one JSON value in UTF-8, possibly with white space around it. */
bool json_is_good(const char *text, size_t bytes);

/* Returns the number of elements of a JSON array; -1 if the text is not a JSON array. */
int json_count(const char *text, size_t bytes);

/* Does the same for a file; also returns -1 if it cannot be read. */
int json_count_file(const char *path);

/* Returns the file's content and '\0', which the caller frees; NULL if it cannot be
 * read. */
char *json_read_file(const char *path, size_t *bytes);

#endif
