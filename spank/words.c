/* SPDX-License-Identifier: Apache-2.0 */
/* A table of the words that a text may consist of, each setting one int of a record. */
#include "spank/words.h"

#include <stdio.h>
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

/* The length of "key=" of a word; 0: it has no key. */
static size_t key_length(const char *text)
{
    const char *sign = strchr(text, '=');

    return sign != NULL ? (size_t)(sign - text) + 1 : 0;
}

size_t hvd_words_list(const struct hvd_word *words, size_t count, char *text,
                      size_t bytes)
{
    size_t used = 0;

    text[0] = '\0';
    for (size_t i = 0; i < count && used < bytes; i++) {
        size_t key = key_length(words[i].text);
        bool is_more =
            i > 0 && key > 0 && strncmp(words[i - 1].text, words[i].text, key) == 0;

        used += (size_t)snprintf(text + used, bytes - used, "%s%s",
                                 is_more ? "|"
                                 : i > 0 ? ", "
                                         : "",
                                 words[i].text + (is_more ? key : 0));
    }
    return used < bytes ? used : bytes - 1;
}
