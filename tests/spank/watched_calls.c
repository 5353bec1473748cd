/* SPDX-License-Identifier: Apache-2.0 */
/* Counts calls that code running as root must not make. */
#include "tests/spank/watched_calls.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

static bool is_watching;
static const char *first;

void watch_start(void)
{
    is_watching = true;
    first = NULL;
}

const char *watch_stop(void)
{
    is_watching = false;
    return first;
}

static void *call(const char *name)
{
    if (is_watching && first == NULL) {
        first = name;
    }
    return dlsym(RTLD_NEXT, name);
}

int open(const char *path, int flags, ...)
{
    int (*real)(const char *, int, ...) = (int (*)(const char *, int, ...))call("open");
    va_list arguments;
    int mode;

    va_start(arguments, flags);
    mode = va_arg(arguments, int);
    va_end(arguments);
    return real(path, flags, mode);
}

int openat(int dir, const char *path, int flags, ...)
{
    int (*real)(int, const char *, int, ...) =
        (int (*)(int, const char *, int, ...))call("openat");
    va_list arguments;
    int mode;

    va_start(arguments, flags);
    mode = va_arg(arguments, int);
    va_end(arguments);
    return real(dir, path, flags, mode);
}

FILE *fopen(const char *path, const char *mode)
{
    return ((FILE * (*)(const char *, const char *)) call("fopen"))(path, mode);
}

int access(const char *path, int mode)
{
    return ((int (*)(const char *, int))call("access"))(path, mode);
}

int faccessat(int dir, const char *path, int mode, int flags)
{
    return ((int (*)(int, const char *, int, int))call("faccessat"))(dir, path, mode,
                                                                     flags);
}

int socket(int family, int type, int protocol)
{
    return ((int (*)(int, int, int))call("socket"))(family, type, protocol);
}

pid_t fork(void)
{
    return ((pid_t(*)(void))call("fork"))();
}

char *getenv(const char *name)
{
    return ((char *(*)(const char *))call("getenv"))(name);
}

int setenv(const char *name, const char *value, int overwrite)
{
    return ((int (*)(const char *, const char *, int))call("setenv"))(name, value,
                                                                      overwrite);
}
