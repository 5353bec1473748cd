/* SPDX-License-Identifier: Apache-2.0 */
/* Grows one word at a time: lists are short. */
#include "pmix_boot/hvdrun/words.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

int hvdrun_words_add(struct hvdrun_words *words, struct hvd_error *err,
                     const char *format, ...)
{
    size_t room = (size_t)words->count + 2;
    char **items = realloc(words->items, room * sizeof(*items));
    va_list args;
    int length;

    if (items == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for a list of words");
    }
    words->items = items;
    va_start(args, format);
    length = vasprintf(&items[words->count], format, args);
    va_end(args);
    items[words->count + (length < 0 ? 0 : 1)] = NULL;
    if (length < 0) {
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for a list of words");
    }
    words->count++;
    return 0;
}

int hvdrun_words_add_all(struct hvdrun_words *words, const char *const *items,
                         struct hvd_error *err)
{
    int status = 0;

    for (; *items != NULL && status == 0; items++) {
        status = hvdrun_words_add(words, err, "%s", *items);
    }
    return status;
}

void hvdrun_words_finish(struct hvdrun_words *words)
{
    for (int i = 0; i < words->count; i++) {
        free(words->items[i]);
    }
    free(words->items);
    *words = (struct hvdrun_words){0};
}
