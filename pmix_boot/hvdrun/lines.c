/* SPDX-License-Identifier: Apache-2.0 */
/* Holds back the beginning of a line until the line is complete or very long. */
#include "pmix_boot/hvdrun/lines.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "gpu_binding/base/hvd_status.h"

/* A line longer than this is passed on in pieces. */
#define HELD_MAX 65536

static int write_all(int fd, const char *data, size_t bytes)
{
    while (bytes > 0) {
        ssize_t written = write(fd, data, bytes);

        if (written >= 0) {
            data += written;
            bytes -= (size_t)written;
        } else if (errno == EAGAIN) {
            (void)poll(&(struct pollfd){.fd = fd, .events = POLLOUT}, 1, -1);
        } else if (errno != EINTR) {
            return HVD_ERR_SYS;
        }
    }
    return 0;
}

static size_t format_time(char *text, size_t bytes)
{
    struct timespec now;
    struct tm local;
    size_t used;

    clock_gettime(CLOCK_REALTIME, &now);
    localtime_r(&now.tv_sec, &local);
    used = strftime(text, bytes, "%Y-%m-%d %H:%M:%S", &local);
    return used +
           (size_t)snprintf(text + used, bytes - used, ".%03ld ", now.tv_nsec / 1000000);
}

/* Returns where the last complete line of data ends; 0: none is complete. Without labels,
 * a carriage return also ends a line, so that progress bars move. */
static size_t find_end(const struct hvdrun_lines *lines, const char *data, size_t bytes)
{
    while (bytes > 0 && data[bytes - 1] != '\n' &&
           (data[bytes - 1] != '\r' || lines->label != NULL)) {
        bytes--;
    }
    return bytes;
}

/* Writes each line with the prefix. */
static int write_labelled(const struct hvdrun_lines *lines, const char *data,
                          size_t bytes)
{
    char prefix[128];
    size_t used = lines->has_time ? format_time(prefix, sizeof(prefix)) : 0;
    int status = 0;

    snprintf(prefix + used, sizeof(prefix) - used, "%s", lines->label);
    while (bytes > 0 && status == 0) {
        const char *end = memchr(data, '\n', bytes);
        size_t length = end != NULL ? (size_t)(end - data) + 1 : bytes;

        status = write_all(lines->out, prefix, strlen(prefix));
        if (status == 0) {
            status = write_all(lines->out, data, length);
        }
        data += length;
        bytes -= length;
    }
    return status;
}

static int write_lines(const struct hvdrun_lines *lines, const char *data, size_t bytes)
{
    return lines->label != NULL ? write_labelled(lines, data, bytes)
                                : write_all(lines->out, data, bytes);
}

static void copy_lines(struct hvdrun_lines *lines, const char *data, size_t bytes)
{
    if (lines->copy >= 0 && lines->copy_error == 0 &&
        write_all(lines->copy, data, bytes) < 0) {
        lines->copy_error = errno;
    }
}

int hvdrun_lines_add(struct hvdrun_lines *lines, const char *data, size_t bytes)
{
    size_t total = lines->held_bytes + bytes;
    char *all = realloc(lines->held, total);
    size_t end;
    int status = 0;

    if (all == NULL) {
        return HVD_ERR_SYS;
    }
    memcpy(all + lines->held_bytes, data, bytes);
    lines->held = all;
    end = find_end(lines, all, total);
    end = end == 0 && total > HELD_MAX ? total : end;
    copy_lines(lines, data, bytes);
    if (end > 0) {
        status = write_lines(lines, all, end);
        memmove(all, all + end, total - end);
    }
    lines->held_bytes = total - end;
    return status;
}

int hvdrun_lines_end(struct hvdrun_lines *lines)
{
    int status = 0;

    if (lines->held_bytes > 0) {
        status = write_lines(lines, lines->held, lines->held_bytes);
    }
    if (lines->held_bytes > 0 && lines->label != NULL && status == 0) {
        status = write_all(lines->out, "\n", 1);
    }
    free(lines->held);
    lines->held = NULL;
    lines->held_bytes = 0;
    return status;
}
