/* SPDX-License-Identifier: Apache-2.0 */
/* Log lines go to the standard error stream, or to a sink that the program chooses. */
#include "gpu_binding/base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <strings.h>
#include <time.h>

#include "gpu_binding/base/hvd_status.h"

static void print_line(enum hvd_log_level level, const char *line)
{
    (void)level;
    fprintf(stderr, "%s\n", line);
}

static hvd_log_sink log_sink = print_line;
static enum hvd_log_level log_least = HVD_LOG_WARN;
static char log_who[32]; /* the name in each line's stamp; empty: lines have no stamp */

void hvd_log_to(hvd_log_sink sink, enum hvd_log_level least)
{
    log_sink = sink;
    log_least = least;
}

void hvd_log_least(enum hvd_log_level least)
{
    log_least = least;
}

void hvd_log_stamp(const char *who)
{
    snprintf(log_who, sizeof(log_who), "%s", who != NULL ? who : "");
}

/* Writes the beginning of a line; returns its length. */
static size_t begin_line(enum hvd_log_level level, char *line, size_t bytes)
{
    static const char letters[] = {
        [HVD_LOG_DEBUG] = 'D', [HVD_LOG_INFO] = 'I', [HVD_LOG_WARN] = 'W',
        [HVD_LOG_ERROR] = 'E', [HVD_LOG_OFF] = 'F',
    };
    struct timespec now;
    struct tm local;
    char text[32];

    if (log_who[0] == '\0') {
        return (size_t)snprintf(line, bytes, "hvd: ");
    }
    clock_gettime(CLOCK_REALTIME, &now);
    localtime_r(&now.tv_sec, &local);
    strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &local);
    return (size_t)snprintf(line, bytes, "[%s.%06ld: %c %s] ", text, now.tv_nsec / 1000,
                            letters[level], log_who);
}

void hvd_log(enum hvd_log_level level, const char *format, ...)
{
    char line[4096]; /* PIPE_BUF: lines of ranks that share a pipe do not mix */
    size_t used;
    va_list args;

    if (log_sink == NULL || level < log_least) {
        return;
    }
    used = begin_line(level, line, sizeof(line));
    va_start(args, format);
    vsnprintf(line + used, sizeof(line) - used, format, args);
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
