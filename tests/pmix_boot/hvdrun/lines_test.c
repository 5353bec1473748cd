/* SPDX-License-Identifier: Apache-2.0 */
/* Whole lines of a rank's output, with labels and copies. */
#include "pmix_boot/hvdrun/lines.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/tap.h"

enum {
    PIPE_BYTES = 65536
};

/* Reads all that is in the pipe. */
static size_t drain(int fd, char *text)
{
    ssize_t bytes = read(fd, text, PIPE_BYTES);

    return bytes > 0 ? (size_t)bytes : 0;
}

static bool says(int fd, const char *expected)
{
    static char text[PIPE_BYTES];
    size_t bytes = drain(fd, text);

    return bytes == strlen(expected) && memcmp(text, expected, bytes) == 0;
}

static int open_pipe(int ends[2])
{
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) {
        perror("pipe2");
        exit(EXIT_FAILURE);
    }
    return ends[1];
}

static void test_lines(void)
{
    int ends[2];
    struct hvdrun_lines lines = {.out = open_pipe(ends), .copy = -1};

    hvdrun_lines_add(&lines, "beg", 3);
    tap_ok(says(ends[0], ""), "the beginning of a line is held");
    hvdrun_lines_add(&lines, "in\nnext", 7);
    tap_ok(says(ends[0], "begin\n"), "a line is passed on once it is complete");
    hvdrun_lines_add(&lines, "\r50%\r", 5);
    tap_ok(says(ends[0], "next\r50%\r"), "a carriage return also ends a line");
    hvdrun_lines_add(&lines, "tail", 4);
    hvdrun_lines_end(&lines);
    tap_ok(says(ends[0], "tail") && lines.held == NULL,
           "at the end of the stream, the held line is passed on as it is");
    close(ends[0]);
    close(ends[1]);
}

static void test_labels(void)
{
    int ends[2];
    int copies[2];
    struct hvdrun_lines lines = {
        .out = open_pipe(ends), .copy = open_pipe(copies), .label = "[7]: "};

    hvdrun_lines_add(&lines, "one\n\ntw", 7);
    tap_ok(says(ends[0], "[7]: one\n[7]: \n"), "each line gets the label");
    hvdrun_lines_add(&lines, "o\rthree", 7);
    hvdrun_lines_end(&lines);
    tap_ok(says(ends[0], "[7]: two\rthree\n"),
           "with labels only a newline ends a line, and a last line gets one");
    tap_ok(says(copies[0], "one\n\ntwo\rthree"), "the copy is unchanged");
    close(ends[0]);
    close(ends[1]);
    close(copies[0]);
    close(copies[1]);
}

/* Random text in random pieces comes out unchanged. */
static void test_random_pieces(void)
{
    static char sent[8192];
    static char got[PIPE_BYTES];
    int ends[2];
    bool passed = true;

    open_pipe(ends);
    for (int round = 0; round < 200 && passed; round++) {
        struct hvdrun_lines lines = {.out = ends[1], .copy = -1};
        size_t total = (size_t)rand() % sizeof(sent);

        for (size_t i = 0; i < total; i++) {
            sent[i] = "ab\n\r\0"[rand() % 5];
        }
        for (size_t at = 0; at < total;) {
            size_t piece = 1 + (size_t)rand() % 300;

            piece = piece < total - at ? piece : total - at;
            hvdrun_lines_add(&lines, sent + at, piece);
            at += piece;
        }
        hvdrun_lines_end(&lines);
        passed = drain(ends[0], got) == total && memcmp(got, sent, total) == 0;
    }
    tap_ok(passed, "200 random streams come out unchanged");
    close(ends[0]);
    close(ends[1]);
}

static void test_reader_gone(void)
{
    int ends[2];
    struct hvdrun_lines lines = {.out = open_pipe(ends), .copy = -1};

    signal(SIGPIPE, SIG_IGN);
    close(ends[0]);
    tap_ok(hvdrun_lines_add(&lines, "x\n", 2) < 0, "a reader that is gone is an error");
    hvdrun_lines_end(&lines);
    close(ends[1]);
}

int main(void)
{
    srand(tap_seed((unsigned)time(NULL)));
    test_lines();
    test_labels();
    test_random_pieces();
    test_reader_gone();
    return tap_done();
}
