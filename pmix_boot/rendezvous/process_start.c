/* SPDX-License-Identifier: Apache-2.0 */
#include "pmix_boot/rendezvous/process_start.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Reads field 22 of proc(5). The name, in parentheses, is field 2 and may contain
 * anything. */
static uint64_t parse_stat(const char *text)
{
    const char *at = strrchr(text, ')');

    for (int field = 2; at != NULL && field < 22; field++) {
        at = strchr(at + 1, ' ');
    }
    return at != NULL ? strtoull(at + 1, NULL, 10) : 0;
}

uint64_t hvd_rendezvous_process_start(pid_t pid)
{
    char path[64];
    char text[1024];
    size_t bytes;
    FILE *file;

    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    file = fopen(path, "re");
    if (file == NULL) {
        return 0;
    }
    bytes = fread(text, 1, sizeof(text) - 1, file);
    fclose(file);
    text[bytes] = '\0';
    return parse_stat(text);
}
