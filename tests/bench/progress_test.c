/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of progress, at times that the test makes up. */
#include "contrib/bench/hvd_bench/progress.h"

#include <stdlib.h>
#include <string.h>

#include "tests/tap.h"

/* What a run of four works of ten seconds writes; the caller frees it. */
static char *run(enum bench_progress_style style)
{
    char *text = NULL;
    size_t bytes = 0;
    struct bench_progress progress = {.style = style,
                                      .out = open_memstream(&text, &bytes)};

    bench_progress_show(&progress, 0, "starting gloo", 95);
    bench_progress_begin(&progress, 4, 100);
    for (int work = 0; work < 4; work++) {
        for (int second = 0; second < 10; second++) {
            bench_progress_show(&progress, second / 10.0, "allreduce 8",
                                100 + 10 * work + second);
        }
        bench_progress_step(&progress);
        bench_progress_erase(&progress);
    }
    fclose(progress.out);
    return text;
}

static void test_styles(void)
{
    tap_ok(bench_progress_style_for(false, false) == BENCH_PROGRESS_NONE &&
               bench_progress_style_for(true, false) == BENCH_PROGRESS_LINES &&
               bench_progress_style_for(false, true) == BENCH_PROGRESS_IN_PLACE,
           "lines are for terminals, and for logs where they are asked for");
}

static void test_terminal(void)
{
    char *text = run(BENCH_PROGRESS_IN_PLACE);
    size_t length = strlen(text);

    tap_ok(strchr(text, '\n') == NULL, "on a terminal there is one line");
    tap_ok(strstr(text, "starting gloo\r") != NULL, "what is started is shown");
    tap_ok(strstr(text, "0 of 4 done: allreduce 8\r") != NULL,
           "no time is estimated before something is done");
    tap_ok(strstr(text, "2 of 4 done, about 20 s left: allreduce 8\r") != NULL,
           "the rest is as long as the share that is left");
    tap_ok(length > 4 && strcmp(text + length - 4, "\033[K\r") == 0,
           "the line is erased before something else is printed");
    free(text);
}

static void test_log(void)
{
    char *text = run(BENCH_PROGRESS_LINES);
    int lines = 0;

    for (const char *at = text; (at = strchr(at, '\n')) != NULL; at++) {
        lines++;
    }
    tap_ok(lines == 5 && strpbrk(text, "\r\033") == NULL,
           "in a log there is a whole line every ten seconds");
    free(text);
    text = run(BENCH_PROGRESS_NONE);
    tap_ok(text[0] == '\0', "or none");
    free(text);
}

int main(void)
{
    test_styles();
    test_terminal();
    test_log();
    return tap_done();
}
