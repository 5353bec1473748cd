/* SPDX-License-Identifier: Apache-2.0 */
/* Warnings of the stand-in for NCCL, in the file and the format of the real one. */
#include "tests/fake_gpu/fake_nccl.h"

#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static FILE *file; /* NULL: stderr */
static char host[256];

/* Replaces %h, %p and %% as NCCL does. */
static void expand(const char *name, char *path, size_t bytes)
{
    size_t used = 0;

    for (; *name != '\0' && used + 1 < bytes; name++) {
        const bool is_mark =
            name[0] == '%' && name[1] != '\0' && strchr("hp%", name[1]) != NULL;
        const char kind = is_mark ? *++name : '\0';

        used += (size_t)(kind == 'h' ? snprintf(path + used, bytes - used, "%s", host)
                         : kind == 'p'
                             ? snprintf(path + used, bytes - used, "%d", (int)getpid())
                             : snprintf(path + used, bytes - used, "%c", *name));
    }
}

static void open_log(void)
{
    const char *level = getenv("NCCL_DEBUG");
    const char *name = getenv("NCCL_DEBUG_FILE");
    char path[PATH_MAX] = "";

    (void)gethostname(host, sizeof(host) - 1);
    host[strcspn(host, ".")] = '\0';
    if (level != NULL && strcmp(level, "VERSION") != 0 && name != NULL) {
        expand(name, path, sizeof(path));
        file = fopen(path, "w");
    }
    if (file != NULL) {
        setlinebuf(file);
    }
}

void fake_nccl_begin_log(void)
{
    (void)pthread_once(&once, open_log);
}

void fake_nccl_warn(const char *source, const char *format, ...)
{
    const time_t now = time(NULL);
    struct tm local;
    char stamp[32];
    va_list arguments;
    FILE *out;

    fake_nccl_begin_log();
    out = file != NULL ? file : stderr;
    localtime_r(&now, &local);
    strftime(stamp, sizeof(stamp), "%F %T", &local);
    flockfile(out);
    fprintf(out, "\n[%s] %s:%d:%d [0] %s NCCL WARN ", stamp, host, (int)getpid(),
            (int)getpid(), source);
    va_start(arguments, format);
    vfprintf(out, format, arguments);
    va_end(arguments);
    fputc('\n', out);
    funlockfile(out);
}
