/* SPDX-License-Identifier: Apache-2.0 */
/* The text of HVD_EXPORTED: the names of the variables that the plugin has set in a task,
 * each with a checksum of its value, as NAME:CHECKSUM,... The checksum has eight
 * hexadecimal digits, which show an accidental change and keep secrets out of the
 * text. */
#ifndef HVD_EXPORTED_H
#define HVD_EXPORTED_H

#include <stdbool.h>
#include <stddef.h>

enum {
    HVD_EXPORTED_BYTES = 4096
};

/* One entry. The name is part of the text that was read, without a NUL at its end. */
struct hvd_exported {
    const char *name;
    int length;
    unsigned checksum;
};

/* Adds a variable, or replaces its entry. A full text stays as it is. */
void hvd_exported_add(char text[HVD_EXPORTED_BYTES], const char *name, const char *value);

/* Removes the entry of a variable, if there is one. */
void hvd_exported_remove(char *text, const char *name);

/* Reads the entry at *cursor and moves *cursor behind it. Returns false at the end of the
 * text, and at an entry that is malformed. */
bool hvd_exported_next(const char **cursor, struct hvd_exported *entry);

/* True if the value, or one of its parts between colons, is the one that was added:
 * others may add directories before or behind that of PYTHONPATH. */
bool hvd_exported_matches(const struct hvd_exported *entry, const char *value);

#endif
