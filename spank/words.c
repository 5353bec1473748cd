/* SPDX-License-Identifier: Apache-2.0 */
/* A table of the words that a text may consist of, each setting one int of a record. */
#include "spank/words.h"

#include <string.h>

bool hvd_word_apply(const struct hvd_word *words, size_t count, const char *text,
                    size_t length, void *record)
{
    for (size_t i = 0; i < count; i++) {
        if (strlen(words[i].text) == length && memcmp(words[i].text, text, length) == 0) {
            memcpy((char *)record + words[i].field, &words[i].value, sizeof(int));
            return true;
        }
    }
    return false;
}
