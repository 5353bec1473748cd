/* SPDX-License-Identifier: Apache-2.0 */
/* A growing file that is a complete JSON array at every moment, even if the process is
 * killed. */
#include "collectives/trace/trace_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "collectives/trace/trace_bracket.h"
#include "collectives/trace/trace_text.h"
#include "gpu_binding/base/attr.h"
#include "gpu_binding/base/fork_close.h"

enum {
    PAGE_BYTES = 4096, /* a divisor of the page size of all machines */
    LEAST_ROOM = 1024 * 1024,
    MOST_ROOM = 64 * 1024 * 1024,
    SPACES_BYTES = 64 * 1024,
};

struct hvd_trace_file {
    int fd;
    char *path;
    char *spaces; /* [SPACES_BYTES] */
    int64_t size; /* a multiple of PAGE_BYTES; the closing bracket is the last byte */
    int64_t next; /* offset of the next event */
    char page[PAGE_BYTES]; /* events to be written at `next`, within one page */
    size_t page_bytes;
    bool has_elements;
    bool has_failed;
};

/* Returns 0, or HVD_ERR_SYS with errno set. */
static int write_at(int fd, const char *data, size_t bytes, int64_t offset)
{
    while (bytes > 0) {
        ssize_t n = pwrite(fd, data, bytes, offset);

        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return HVD_ERR_SYS;
        }
        data += n;
        bytes -= (size_t)n;
        offset += n;
    }
    return 0;
}

/* Cuts the file back to its old size. If that fails, the file has spaces behind the
 * bracket. */
static int undo_growth(struct hvd_trace_file *file)
{
    int error = errno;
    int ignored HVD_UNUSED = ftruncate(file->fd, file->size);

    errno = error;
    return HVD_ERR_SYS;
}

/* Makes room before the bracket. If it fails, errno is set and the array is unchanged. */
static int grow_file(struct hvd_trace_file *file)
{
    int64_t room = file->size < LEAST_ROOM ? LEAST_ROOM : file->size;
    int64_t end = file->size + (room > MOST_ROOM ? MOST_ROOM : room);

    for (int64_t at = file->size; at < end; at += SPACES_BYTES) {
        int64_t left = end - at;

        if (write_at(file->fd, file->spaces,
                     (size_t)(left < SPACES_BYTES ? left : SPACES_BYTES), at) != 0) {
            return undo_growth(file);
        }
    }
    if (hvd_trace_move_bracket(file->fd, file->size - 1, end - 1) != 0) {
        return undo_growth(file);
    }
    file->size = end;
    return 0;
}

/* Writes an empty array, which is one page. */
static int write_empty(struct hvd_trace_file *file)
{
    memset(file->page, ' ', PAGE_BYTES);
    file->page[0] = '[';
    file->page[PAGE_BYTES - 1] = ']';
    file->size = PAGE_BYTES;
    file->next = 1;
    return write_at(file->fd, file->page, PAGE_BYTES, 0);
}

static void file_free(struct hvd_trace_file *file)
{
    hvd_fork_close_now(file->fd);
    free(file->path);
    free(file->spaces);
    free(file);
}

static struct hvd_trace_file *file_alloc(const char *path)
{
    struct hvd_trace_file *file = calloc(1, sizeof(*file));

    if (file == NULL) {
        return NULL;
    }
    file->fd = -1;
    file->path = strdup(path);
    file->spaces = malloc(SPACES_BYTES);
    if (file->path == NULL || file->spaces == NULL) {
        file_free(file);
        return NULL;
    }
    memset(file->spaces, ' ', SPACES_BYTES);
    return file;
}

/* Removes an older file of this name, unless it is a symbolic link. Another job that is
 * still writing to the older file continues to write to it. If the removal fails, the
 * older file is overwritten. */
static void leave_older_file(const char *path)
{
    struct stat facts;

    if (lstat(path, &facts) == 0 && S_ISREG(facts.st_mode)) {
        unlink(path);
    }
}

int hvd_trace_file_open(const char *path, struct hvd_trace_file **out,
                        struct hvd_error *err)
{
    struct hvd_trace_file *file = file_alloc(path);
    int status;

    if (file == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for %s", path);
    }
    leave_older_file(path);
    file->fd =
        open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0666);
    if (file->fd < 0 || hvd_fork_close_add(file->fd) != 0) {
        status = hvd_fail(err, HVD_ERR_SYS, "cannot open %s: %m", path);
    } else if (write_empty(file) != 0 || grow_file(file) != 0) {
        status = hvd_fail(err, HVD_ERR_SYS, "cannot write %s: %m", path);
    } else {
        *out = file;
        return 0;
    }
    file_free(file);
    return status;
}

static int give_up(struct hvd_trace_file *file, struct hvd_error *err)
{
    file->has_failed = true;
    return hvd_fail(err, HVD_ERR_SYS, "cannot write %s: %m", file->path);
}

int hvd_trace_file_flush(struct hvd_trace_file *file, struct hvd_error *err)
{
    if (file->has_failed || file->page_bytes == 0) {
        return 0;
    }
    if (write_at(file->fd, file->page, file->page_bytes, file->next) != 0) {
        return give_up(file, err);
    }
    file->next += (int64_t)file->page_bytes;
    file->page_bytes = 0;
    return 0;
}

/* Makes sure that `bytes` more bytes fit behind the waiting ones, within one page, and
 * that this is not the page of the bracket. */
static int make_place(struct hvd_trace_file *file, size_t bytes, struct hvd_error *err)
{
    int64_t end = (file->next / PAGE_BYTES + 1) * PAGE_BYTES;
    int status;

    if (file->next + (int64_t)(file->page_bytes + bytes) > end) {
        status = hvd_trace_file_flush(file, err);
        if (status != 0) {
            return status;
        }
        file->next = end;
    }
    if (file->next == file->size - PAGE_BYTES && grow_file(file) != 0) {
        return give_up(file, err);
    }
    return 0;
}

static int add_element(struct hvd_trace_file *file, const char *text, size_t bytes,
                       struct hvd_error *err)
{
    const char *before = file->has_elements ? ",\n" : "\n";
    size_t before_bytes = strlen(before);
    int status = make_place(file, before_bytes + bytes, err);

    if (status != 0) {
        return status;
    }
    memcpy(file->page + file->page_bytes, before, before_bytes);
    memcpy(file->page + file->page_bytes + before_bytes, text, bytes);
    file->page_bytes += before_bytes + bytes;
    file->has_elements = true;
    return 0;
}

int hvd_trace_file_add(struct hvd_trace_file *file, const char *lines, size_t bytes,
                       struct hvd_error *err)
{
    const char *end = lines + bytes;
    int status = 0;

    while (!file->has_failed && status == 0 && lines < end) {
        const char *stop = memchr(lines, '\n', (size_t)(end - lines));

        stop = stop != NULL ? stop : end;
        if (stop - lines <= HVD_TRACE_TEXT_BYTES) {
            status = add_element(file, lines, (size_t)(stop - lines), err);
        }
        lines = stop + 1;
    }
    return status;
}

/* Moves the bracket to a line of its own behind the events, and cuts off the rest. */
static void cut_room_off(struct hvd_trace_file *file)
{
    int64_t bracket = file->next + 1;

    if (bracket < file->size - 1 && write_at(file->fd, "\n", 1, file->next) == 0 &&
        hvd_trace_move_bracket(file->fd, file->size - 1, bracket) == 0 &&
        write_at(file->fd, "\n", 1, bracket + 1) == 0) {
        int ignored HVD_UNUSED = ftruncate(file->fd, bracket + 2);
    }
}

void hvd_trace_file_close(struct hvd_trace_file *file)
{
    if (file == NULL) {
        return;
    }
    hvd_trace_file_flush(file, NULL);
    cut_room_off(file);
    file_free(file);
}
