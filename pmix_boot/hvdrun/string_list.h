/* SPDX-License-Identifier: Apache-2.0 */
/* A list of strings that ends with NULL, as exec takes arguments and environments. */
#ifndef HVDRUN_STRING_LIST_H
#define HVDRUN_STRING_LIST_H

#include <stdbool.h>

#include "gpu_binding/base/attr.h"
#include "gpu_binding/base/error.h"

/* A zeroed list is empty. */
struct hvdrun_string_list {
    char **items; /* owned; ends with NULL unless nothing was ever added */
    int count;
};

/* Appends a string in printf format. */
int hvdrun_string_list_add(struct hvdrun_string_list *words, struct hvd_error *err,
                           const char *format, ...) HVD_PRINTF(3, 4);

/* Appends copies of all items of a list that ends with NULL. */
int hvdrun_string_list_add_all(struct hvdrun_string_list *words, const char *const *items,
                               struct hvd_error *err);

/* Frees all items and empties the list. */
void hvdrun_string_list_finish(struct hvdrun_string_list *words);

/* Looks up a variable in a list of "name=value". The value is borrowed until the list
 * changes; NULL: there is none. */
const char *hvdrun_string_list_get_variable(const struct hvdrun_string_list *environment,
                                            const char *name);

/* Sets a variable. Without overwrite, an existing variable stays, and 0 is returned. */
int hvdrun_string_list_set_variable(struct hvdrun_string_list *environment,
                                    const char *name, const char *value, bool overwrite,
                                    struct hvd_error *err);

/* Removes every variable whose name begins with prefix. */
void hvdrun_string_list_remove_variables(struct hvdrun_string_list *environment,
                                         const char *prefix);

#endif
