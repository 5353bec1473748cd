/* SPDX-License-Identifier: Apache-2.0 */
#include "contrib/info/live/stack.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
    PAUSE_MS = 5,
    LIMIT_MS = 300,
    MOST_BYTES = 64 * 1024, /* of the stacks of all threads */
};

static const char link_start[] = "/memfd:hvd-stacks-";

/* Opens the memory file to which the process writes its stacks. The name of the file ends
 * with the number of the signal that asks for one. Returns -1 if there is no file. */
static int open_stacks(pid_t pid, int *number)
{
    char path[64];
    struct dirent *entry;
    int fd = -1;
    DIR *files;

    snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
    files = opendir(path);
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
static bool is_caught(pid_t pid, int number)
{
    char line[256];
    unsigned long long caught = 0;
    FILE *status;

    snprintf(line, sizeof(line), "/proc/%d/status", (int)pid);
    status = fopen(line, "re");
    while (status != NULL && fgets(line, sizeof(line), status) != NULL &&
           sscanf(line, "SigCgt: %llx", &caught) != 1) {
    }
    if (status != NULL) {
        fclose(status);
    }
    return (caught >> (number - 1) & 1) != 0;
}

/* Waits until the file has grown and has stopped growing. Returns its size. */
static off_t await_text(int fd, off_t before)
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
    return size;
}

/* Frees the memory of older stacks; offsets in the file stay valid. Changes nothing but
 * memory files, because a user could offer root another file under this name. All memory
 * files are on one device, and no file with a path is on it. */
static void free_older(int fd, off_t end)
{
    const int own = memfd_create("hvd-info", MFD_CLOEXEC);
    struct stat facts, of_own;

    if (own >= 0 && fstat(own, &of_own) == 0 && fstat(fd, &facts) == 0 &&
        facts.st_dev == of_own.st_dev && end > 0) {
        fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, end);
    }
    if (own >= 0) {
        close(own);
    }
}

/* Copies the lines of the last stack: faulthandler writes the main thread last. */
static void take_main(char *all, char *text, size_t bytes)
{
    static const char line_start[] = "  File ";
    const char *at = strstr(all, line_start);
    size_t used = 0;

    text[0] = '\0';
    for (char *next = all; (next = strstr(next, "\n\n")) != NULL; next += 2) {
        const char *first = strstr(next, line_start);

        at = first != NULL ? first : at;
    }
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

void hvd_info_stack_read(pid_t pid, char *text, size_t bytes)
{
    char *all = malloc(MOST_BYTES);
    int number = 0;
    int fd = open_stacks(pid, &number);
    off_t before, after;
    ssize_t length = 0;

    text[0] = '\0';
    if (fd >= 0 && all != NULL && number >= SIGRTMIN && number <= SIGRTMAX &&
        is_caught(pid, number)) {
        before = size_of(fd);
        free_older(fd, before);
        if (kill(pid, number) == 0) {
            after = await_text(fd, before);
            before = after - before < MOST_BYTES ? before : after - MOST_BYTES + 1;
            length = pread(fd, all, MOST_BYTES - 1, before);
        }
        all[length > 0 ? length : 0] = '\0';
        take_main(all, text, bytes);
    }
    if (fd >= 0) {
        close(fd);
    }
    free(all);
}
