/* SPDX-License-Identifier: Apache-2.0 */
/* Log lines go to a sink that the program chooses; a library never prints by itself. */
#include "gpu_binding/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "gpu_binding/hvd_status.h"

static void print_line(enum hvd_log_level level, const char *line)
{
    (void)level;
    fprintf(stderr, "%s\n", line);
}

static hvd_log_sink log_sink = print_line;
static enum hvd_log_level log_least = HVD_LOG_WARN;

void hvd_log_to(hvd_log_sink sink, enum hvd_log_level least)
{
    log_sink = sink;
    log_least = least;
}

void hvd_log_least(enum hvd_log_level least)
{
    log_least = least;
}

void hvd_log(enum hvd_log_level level, const char *format, ...)
{
    static const char prefix[] = "hvd: ";
    char line[1024];
    va_list args;

    if (log_sink == NULL || level < log_least) {
        return;
    }
    memcpy(line, prefix, sizeof(prefix));
    va_start(args, format);
    vsnprintf(line + sizeof(prefix) - 1, sizeof(line) - sizeof(prefix) + 1, format, args);
    va_end(args);
    log_sink(level, line);
}

int hvd_log_level_parse(const char *word, enum hvd_log_level *level)
{
    static const struct {
        const char *word;
        enum hvd_log_level level;
    } words[] = {
        {"trace", HVD_LOG_DEBUG},  {"debug", HVD_LOG_DEBUG}, {"info", HVD_LOG_INFO},
        {"warning", HVD_LOG_WARN}, {"warn", HVD_LOG_WARN},   {"error", HVD_LOG_ERROR},
        {"fatal", HVD_LOG_ERROR},  {"off", HVD_LOG_OFF},
    };

    for (unsigned i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (strcasecmp(word, words[i].word) == 0) {
            *level = words[i].level;
            return 0;
        }
    }
    return HVD_ERR_ARG;
}
