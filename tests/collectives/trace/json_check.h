/* SPDX-License-Identifier: Apache-2.0 */
/* Is a text JSON? As strict as RFC 8259, for tests of what writes it. */
#ifndef HVD_TEST_JSON_CHECK_H
#define HVD_TEST_JSON_CHECK_H

#include <stdbool.h>
#include <stddef.h>

/* One JSON value in UTF-8, spaces around it. */
bool json_is_good(const char *text, size_t bytes);

/* The elements of a JSON array; -1 when it is none. */
int json_count(const char *text, size_t bytes);

/* The same of a file, -1 too when it cannot be read. */
int json_count_file(const char *path);

/* The whole file and '\0', to be freed; NULL when it cannot be read. */
char *json_read_file(const char *path, size_t *bytes);

#endif
