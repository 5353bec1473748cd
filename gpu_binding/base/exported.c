/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and writes the text of HVD_EXPORTED. */
#include "gpu_binding/base/exported.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    DIGITS = 8
};

/* FNV-1a with 32 bits. */
static unsigned checksum_of(const char *value, size_t length)
{
    unsigned sum = 2166136261U;

    for (size_t i = 0; i < length; i++) {
        sum = (sum ^ (unsigned char)value[i]) * 16777619U;
    }
    return sum;
}

bool hvd_exported_next(const char **cursor, struct hvd_exported *entry)
{
    const char *name = *cursor + (**cursor == ',' ? 1 : 0);
    const char *colon = name + strcspn(name, ":,");
    char digits[DIGITS + 1] = "";

    if (colon == name || *colon != ':' ||
        strspn(colon + 1, "0123456789abcdef") != DIGITS) {
        return false;
    }
    memcpy(digits, colon + 1, DIGITS);
    *entry = (struct hvd_exported){.name = name,
                                   .length = (int)(colon - name),
                                   .checksum = (unsigned)strtoul(digits, NULL, 16)};
    *cursor = colon + 1 + DIGITS;
    return true;
}

void hvd_exported_remove(char *text, const char *name)
{
    const char *cursor = text;
    const char *start = cursor;
    struct hvd_exported entry;

    while (hvd_exported_next(&cursor, &entry)) {
        if (strlen(name) == (size_t)entry.length &&
            strncmp(name, entry.name, strlen(name)) == 0) {
            const char *rest = start == text && *cursor == ',' ? cursor + 1 : cursor;

            memmove(text + (start - text), rest, strlen(rest) + 1);
            return;
        }
        start = cursor;
    }
}

void hvd_exported_add(char text[HVD_EXPORTED_BYTES], const char *name, const char *value)
{
    char entry[256];
    size_t used;

    hvd_exported_remove(text, name);
    used = strlen(text);
    snprintf(entry, sizeof(entry), "%s%s:%08x", used > 0 ? "," : "", name,
             checksum_of(value, strlen(value)));
    if (used + strlen(entry) < HVD_EXPORTED_BYTES) {
        memcpy(text + used, entry, strlen(entry) + 1);
    }
}

bool hvd_exported_matches(const struct hvd_exported *entry, const char *value)
{
    size_t length;

    if (checksum_of(value, strlen(value)) == entry->checksum) {
        return true;
    }
    for (; *value != '\0'; value += length + (value[length] == ':' ? 1 : 0)) {
        length = strcspn(value, ":");
        if (checksum_of(value, length) == entry->checksum) {
            return true;
        }
    }
    return false;
}
