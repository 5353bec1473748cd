/* SPDX-License-Identifier: Apache-2.0 */
#include "collectives/stack/python_stack.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum {
    PAUSE_MS = 5,
    LIMIT_MS = 300,
    MOST_BYTES = 64 * 1024, /* faulthandler writes at most 100 lines */
};

static const char link_start[] = "/memfd:hvd-stacks-";

/* Opens the memory file to which Python writes stacks. The name of the file ends with
 * the number of the signal that asks for one. Returns -1 if there is no file. */
static int open_stacks(int *number)
{
    struct dirent *entry;
    int fd = -1;
    DIR *files = opendir("/proc/self/fd");

    while (files != NULL && fd < 0 && (entry = readdir(files)) != NULL) {
        char target[64];
        ssize_t length =
            readlinkat(dirfd(files), entry->d_name, target, sizeof(target) - 1);

        target[length > 0 ? length : 0] = '\0';
        if (strncmp(target, link_start, strlen(link_start)) == 0) {
            *number = (int)strtol(target + strlen(link_start), NULL, 10);
            /* O_NONBLOCK: opening a pipe of that name would block */
            fd = openat(dirfd(files), entry->d_name, O_RDWR | O_NONBLOCK | O_CLOEXEC);
        }
    }
    if (files != NULL) {
        closedir(files);
    }
    return fd;
}

static off_t size_of(int fd)
{
    struct stat facts;

    return fstat(fd, &facts) == 0 ? facts.st_size : 0;
}

/* Returns whether the process handles the signal. If not, the signal would kill it. */
static bool is_caught(int number)
{
    struct sigaction action;

    return number >= SIGRTMIN && number <= SIGRTMAX &&
           sigaction(number, NULL, &action) == 0 && action.sa_handler != SIG_DFL &&
           action.sa_handler != SIG_IGN;
}

/* Waits until the file has grown and has stopped growing. */
static void await_text(int fd, off_t before)
{
    const struct timespec pause = {.tv_nsec = PAUSE_MS * 1000000L};
    off_t size = before, last;
    int waited_ms = 0;

    do {
        last = size;
        nanosleep(&pause, NULL);
        waited_ms += PAUSE_MS;
        size = size_of(fd);
    } while (waited_ms < LIMIT_MS && (size == before || size != last));
}

/* Copies the lines of the first stack. */
static void take_lines(const char *all, char *text, size_t bytes)
{
    static const char line_start[] = "  File ";
    const char *at = strstr(all, line_start);
    size_t used = 0;

    while (at != NULL && strncmp(at, line_start, strlen(line_start)) == 0) {
        const size_t length = strcspn(at, "\n") + 1;

        if (at[length - 1] == '\0' || used + length - 2 >= bytes) {
            break;
        }
        memcpy(text + used, at + 2, length - 2);
        used += length - 2;
        text[used] = '\0';
        at += length;
    }
}

/* Asks faulthandler, and reads what it has written. Frees the memory of older stacks;
 * offsets in the file stay valid. */
static void ask_python(int fd, int number, char *all)
{
    const off_t before = size_of(fd);
    ssize_t length = 0;

    if (before > 0) {
        fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, before);
    }
    if (syscall(SYS_tgkill, getpid(), getpid(), number) == 0) {
        await_text(fd, before);
        length = pread(fd, all, MOST_BYTES - 1, before);
    }
    all[length > 0 ? length : 0] = '\0';
}

void hvd_stack_python_read(char *text, size_t bytes)
{
    int number = 0;
    const int fd = open_stacks(&number);
    char *all = fd >= 0 && is_caught(number) ? malloc(MOST_BYTES) : NULL;

    text[0] = '\0';
    if (all != NULL) {
        ask_python(fd, number, all);
        take_lines(all, text, bytes);
    }
    free(all);
    if (fd >= 0) {
        close(fd);
    }
}
