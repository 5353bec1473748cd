/* SPDX-License-Identifier: Apache-2.0 */
/* Records the log lines of the code under test. */
#include "tests/collectives/logged.h"

#include <stdio.h>
#include <string.h>

enum {
    MOST_LINES = 64
};

static struct {
    enum hvd_log_level level;
    char text[4096];
} lines[MOST_LINES];
static int line_count;

static void keep(enum hvd_log_level level, const char *line)
{
    if (line_count < MOST_LINES) {
        lines[line_count].level = level;
        snprintf(lines[line_count].text, sizeof(lines[line_count].text), "%s", line);
        line_count++;
    }
}

void logged_begin(void)
{
    line_count = 0;
    hvd_log_to(keep, HVD_LOG_DEBUG);
}

int logged_count(enum hvd_log_level level)
{
    int count = 0;

    for (int i = 0; i < line_count; i++) {
        count += lines[i].level == level ? 1 : 0;
    }
    return count;
}

bool logged_has(enum hvd_log_level level, const char *text)
{
    for (int i = 0; i < line_count; i++) {
        if (lines[i].level == level && strstr(lines[i].text, text) != NULL) {
            return true;
        }
    }
    return false;
}

bool logged_ended(enum hvd_log_level level, const char *text)
{
    int last = line_count - 1;
    size_t bytes, wanted = strlen(text);

    while (last >= 0 && lines[last].level != level) {
        last--;
    }
    bytes = last >= 0 ? strlen(lines[last].text) : 0;
    return bytes >= wanted && strcmp(lines[last].text + bytes - wanted, text) == 0;
}

void logged_show(void)
{
    for (int i = 0; i < line_count; i++) {
        printf("# level %d: %s\n", lines[i].level, lines[i].text);
    }
}
