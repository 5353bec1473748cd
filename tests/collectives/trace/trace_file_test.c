/* SPDX-License-Identifier: Apache-2.0 */
/* The trace file is valid JSON at every moment: checked between any two pages that the
 * kernel writes, which is where kill -9 can cut a write. The test decides when the disk
 * is full. */
#include "collectives/trace/trace_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "collectives/trace/trace_text.h"
#include "tests/collectives/trace/json_check.h"
#include "tests/tap.h"

enum {
    PAGE = 4096,
    MEBIBYTE = 1 << 20
};

static char path[] = "/tmp/hvd-trace-file-XXXXXX";
static struct {
    /* check the file after every 16th page and all small writes */
    bool is_watching;
    int pages;
    int bad; /* number of checks at which it was not valid JSON */
    int64_t size_limit; /* the disk is full beyond this size; 0: never */
} disk;

static void look(size_t bytes)
{
    if (disk.is_watching && (bytes < 4 || disk.pages++ % 16 == 0) &&
        json_count_file(path) < 0) {
        disk.bad++;
    }
}

static ssize_t write_page(int fd, const void *data, size_t bytes, off_t offset)
{
    ssize_t n = syscall(SYS_pwrite64, fd, data, bytes, offset);

    look(bytes);
    return n;
}

/* Replaces the C library's function: writes page by page, as the kernel does. */
ssize_t pwrite(int fd, const void *data, size_t bytes, off_t offset)
{
    size_t done = 0;

    while (done < bytes) {
        size_t piece = PAGE - (size_t)(offset + (off_t)done) % PAGE;

        piece = piece < bytes - done ? piece : bytes - done;
        if (disk.size_limit > 0 &&
            offset + (off_t)(done + piece) > (off_t)disk.size_limit) {
            errno = ENOSPC;
            return done > 0 ? (ssize_t)done : -1;
        }
        if (write_page(fd, (const char *)data + done, piece, offset + (off_t)done) !=
            (ssize_t)piece) {
            return -1;
        }
        done += piece;
    }
    return (ssize_t)done;
}

static struct hvd_trace_file *open_or_die(void)
{
    struct hvd_trace_file *file = NULL;
    struct hvd_error err;

    if (hvd_trace_file_open(path, &file, &err) != 0) {
        printf("Bail out! %s\n", err.text);
        exit(1);
    }
    return file;
}

static int64_t file_bytes(void)
{
    struct stat facts = {0};

    stat(path, &facts);
    return (int64_t)facts.st_size;
}

/* Makes a line with '\n', of this many bytes, at least 20. */
static size_t make_line(char *line, int number, size_t bytes)
{
    int head = snprintf(line, bytes, "{\"n\": %d, \"x\": \"", number);

    memset(line + head, 'x', bytes - (size_t)head);
    memcpy(line + bytes - 3, "\"}\n", 3);
    return bytes;
}

static int add(struct hvd_trace_file *file, int number, size_t bytes)
{
    char line[HVD_TRACE_TEXT_BYTES + 1];

    return hvd_trace_file_add(file, line, make_line(line, number, bytes), NULL);
}

static void good_after_every_event(void)
{
    struct hvd_trace_file *file = open_or_die();
    int bad = json_count_file(path) == 0 ? 0 : 1;

    srand(tap_seed(20260802));
    for (int i = 0; i < 100; i++) {
        int status = add(file, i, 40 + (size_t)rand() % 2000);

        if (status == 0) {
            status = hvd_trace_file_flush(file, NULL);
        }
        bad += status == 0 && json_count_file(path) == i + 1 ? 0 : 1;
    }
    hvd_trace_file_close(file);
    tap_ok(bad == 0, "the file has one more element after every event");
    tap_ok(json_count_file(path) == 100 && file_bytes() < 100 * 2100,
           "a closed file has all events, and no free room");
}

/* Adds 3 MiB, so that the file grows twice. */
static void good_between_all_pages(void)
{
    struct hvd_trace_file *file = open_or_die();
    int events = 0;

    disk.is_watching = true;
    disk.bad = 0;
    while (file_bytes() < 3 * MEBIBYTE) {
        add(file, events, 1500 + (size_t)events % 500);
        events++;
    }
    hvd_trace_file_close(file);
    disk.is_watching = false;
    tap_ok(disk.bad == 0 && json_count_file(path) == events,
           "the file is valid JSON wherever a write is cut, even when it grows and when "
           "it is closed");
}

static void longest_lines_fit(void)
{
    struct hvd_trace_file *file = open_or_die();

    for (int i = 0; i < 1000; i++) {
        add(file, i, HVD_TRACE_TEXT_BYTES + 1); /* '\n' is not counted */
    }
    hvd_trace_file_close(file);
    tap_ok(json_count_file(path) == 1000,
           "events of the greatest length are all written");
}

static void several_lines_at_once(void)
{
    struct hvd_trace_file *file = open_or_die();

    hvd_trace_file_add(file, "{}\n[1]\n\"three\"\n", 15, NULL);
    hvd_trace_file_close(file);
    tap_ok(json_count_file(path) == 3, "each line is an element");
}

static void full_disk(void)
{
    int bad = 0, silent = 0;

    for (int64_t limit = MEBIBYTE + PAGE; limit < 2 * MEBIBYTE; limit += 37 * PAGE) {
        struct hvd_trace_file *file = open_or_die();
        struct hvd_error err = {0};
        char line[1001];
        int failures = 0, events = 0;

        disk.size_limit = limit;
        for (; events < 2000; events++) {
            size_t bytes = make_line(line, events, 1000);

            failures += hvd_trace_file_add(file, line, bytes, &err) != 0 ? 1 : 0;
        }
        bad += json_count_file(path) > 900 ? 0 : 1;
        silent += failures == 1 && strstr(err.text, path) != NULL ? 0 : 1;
        disk.size_limit = 0;
        hvd_trace_file_close(file);
        bad += json_count_file(path) > 900 ? 0 : 1;
    }
    tap_ok(bad == 0, "on a full disk, the file keeps its content");
    tap_ok(silent == 0, "the failure is reported once, with the path");
}

static void cannot_open(const char *where, const char *why)
{
    struct hvd_trace_file *file = NULL;
    struct hvd_error err = {0};
    int status = hvd_trace_file_open(where, &file, &err);

    tap_ok(status == HVD_ERR_SYS && file == NULL && strstr(err.text, where) != NULL &&
               strstr(err.text, why) != NULL,
           "%s: %s", where, err.text);
}

static void cannot_write(void)
{
    int pair[2];

    cannot_open("/dev/full", "No space");
    cannot_open("/nowhere/trace.json", "No such");
    cannot_open("/tmp", "directory");
    if (pipe(pair) == 0) {
        char name[32];

        snprintf(name, sizeof(name), "/dev/fd/%d", pair[1]);
        cannot_open(name, "Illegal seek");
        close(pair[0]);
        close(pair[1]);
    }
}

static void replaces(void)
{
    FILE *old = fopen(path, "w");

    fputs("something that was there, longer than nothing", old);
    fclose(old);
    hvd_trace_file_close(open_or_die());
    tap_ok(json_count_file(path) == 0, "an older file is replaced by an empty array");
    hvd_trace_file_close(NULL);
}

static void two_writers(void)
{
    struct hvd_trace_file *older = open_or_die(), *newer = open_or_die();

    for (int i = 0; i < 1000; i++) {
        add(older, i, 1000);
        add(newer, i, 990);
    }
    hvd_trace_file_close(older);
    hvd_trace_file_close(newer);
    tap_ok(json_count_file(path) == 1000,
           "a process that still writes to the older file does no harm");
}

int main(void)
{
    close(mkstemp(path));
    good_after_every_event();
    good_between_all_pages();
    longest_lines_fit();
    several_lines_at_once();
    full_disk();
    cannot_write();
    replaces();
    two_writers();
    unlink(path);
    return tap_done();
}
