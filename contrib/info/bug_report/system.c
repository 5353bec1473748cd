/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of hvd-info --bug-report about this machine and this process. */
#include "contrib/info/bug_report/system.h"

#include <ctype.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "contrib/info/bug_report/allowed.h"

enum {
    VALUE_BYTES = 400, /* longer values are cut */
};

int hvd_info_build_print(struct hvd_error *err)
{
    (void)err;
    printf("hvd: %s\nbuilt with: %s\n", HVD_VERSION, HVD_INFO_BUILD);
    return 0;
}

/* Prints the rest of the first line of the file that begins with the text. */
static void print_line(const char *subject, const char *file, const char *begin)
{
    char line[1024];
    FILE *in = fopen(file, "re");

    while (in != NULL && fgets(line, sizeof(line), in) != NULL) {
        if (strncmp(line, begin, strlen(begin)) == 0) {
            const char *rest = line + strlen(begin);

            rest += strspn(rest, " \t:=\"");
            printf("%s: %.*s\n", subject, (int)strcspn(rest, "\"\n"), rest);
            break;
        }
    }
    if (in != NULL) {
        fclose(in);
    }
}

int hvd_info_system_print(struct hvd_error *err)
{
    struct utsname name;
    char libc[128] = "unknown";

    if (uname(&name) < 0) {
        return hvd_fail(err, HVD_ERR_SYS, "cannot find the name of the kernel: %m");
    }
    confstr(_CS_GNU_LIBC_VERSION, libc, sizeof(libc));
    printf("kernel: %s %s, %s\n", name.sysname, name.release, name.machine);
    printf("C library: %s\n", libc);
    print_line("distribution", "/etc/os-release", "PRETTY_NAME");
    print_line("processor", "/proc/cpuinfo", "model name");
    print_line("memory", "/proc/meminfo", "MemTotal");
    print_line("NVIDIA's driver", "/proc/driver/nvidia/version", "NVRM version");
    print_line("cgroups", "/proc/self/cgroup", "0::");
    return 0;
}

static void print_number(rlim_t number)
{
    if (number == RLIM_INFINITY) {
        printf("unlimited");
    } else {
        printf("%llu", (unsigned long long)number);
    }
}

int hvd_info_limits_print(struct hvd_error *err)
{
    static const struct {
        const char *name;
        int resource;
    } limits[] = {{"memlock, bytes", RLIMIT_MEMLOCK},
                  {"nofile", RLIMIT_NOFILE},
                  {"nproc", RLIMIT_NPROC},
                  {"stack, bytes", RLIMIT_STACK},
                  {"address space, bytes", RLIMIT_AS},
                  {"core, bytes", RLIMIT_CORE}};
    struct statvfs shm;

    for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
        struct rlimit limit;

        if (getrlimit(limits[i].resource, &limit) < 0) {
            return hvd_fail(err, HVD_ERR_SYS, "cannot read the limit %s: %m",
                            limits[i].name);
        }
        printf("%s: ", limits[i].name);
        print_number(limit.rlim_cur);
        printf(", at most ");
        print_number(limit.rlim_max);
        printf("\n");
    }
    if (statvfs("/dev/shm", &shm) < 0) {
        return hvd_fail(err, HVD_ERR_SYS, "cannot read the size of /dev/shm: %m");
    }
    printf("/dev/shm: %llu bytes, %llu free\n",
           (unsigned long long)shm.f_blocks * shm.f_frsize,
           (unsigned long long)shm.f_bavail * shm.f_frsize);
    return 0;
}

int hvd_info_pmix_print(struct hvd_error *err)
{
    typedef const char *version_function(void);
    void *handle = dlopen("libpmix.so.2", RTLD_NOW | RTLD_LOCAL);
    void *symbol = handle != NULL ? dlsym(handle, "PMIx_Get_version") : NULL;
    version_function *version = NULL;

    (void)err;
    if (symbol == NULL) {
        printf("PMIx: %s\n", dlerror());
        return 0;
    }
    /* POSIX allows this copy of an object pointer to a function pointer. */
    memcpy(&version, &symbol, sizeof(version));
    printf("PMIx: %s\n", version());
    return 0;
}

static int compare_variables(const void *left, const void *right)
{
    return strcmp(*(char *const *)left, *(char *const *)right);
}

/* Prints control characters as '?', so that a value stays on one line. */
static void print_value(const char *value)
{
    for (int i = 0; value[i] != '\0' && i < VALUE_BYTES; i++) {
        putchar(iscntrl((unsigned char)value[i]) ? '?' : value[i]);
    }
    printf(strlen(value) > VALUE_BYTES ? "... (cut)\n" : "\n");
}

static void print_variable(const char *variable)
{
    char name[256];
    const char *equals = strchr(variable, '=');

    if (equals == NULL || (size_t)(equals - variable) >= sizeof(name)) {
        return;
    }
    snprintf(name, sizeof(name), "%.*s", (int)(equals - variable), variable);
    if (hvd_info_is_allowed(name)) {
        printf("%s=", name);
        print_value(equals + 1);
    } else if (hvd_info_is_of_family(name)) {
        printf("%s: set, value left out\n", name);
    }
}

int hvd_info_environment_print(struct hvd_error *err)
{
    size_t count = 0;
    char **sorted;

    while (environ[count] != NULL) {
        count++;
    }
    sorted = malloc((count + 1) * sizeof(*sorted));
    if (sorted == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for %zu variables", count);
    }
    memcpy(sorted, environ, count * sizeof(*sorted));
    qsort(sorted, count, sizeof(*sorted), compare_variables);
    for (size_t i = 0; i < count; i++) {
        print_variable(sorted[i]);
    }
    free(sorted);
    return 0;
}
