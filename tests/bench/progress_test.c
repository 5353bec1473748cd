/* SPDX-License-Identifier: Apache-2.0 */
/* The line of progress, at invented times. */
#include "contrib/bench/hvd_bench/progress.h"

#include <stdlib.h>
#include <string.h>

#include "tests/tap.h"

int main(void)
{
    char *text = NULL;
    size_t length = 0;
    struct bench_progress progress = {.out = open_memstream(&text, &length)};
    struct bench_progress silent = {.out = NULL};

    bench_progress_show(&progress, 0, "starting gloo", 95);
    bench_progress_begin(&progress, 4, 100);
    for (int second = 0; second < 40; second++) {
        bench_progress_show(&progress, second % 10 / 10.0, "allreduce 8", 100 + second);
        if (second % 10 == 9) {
            bench_progress_step(&progress);
            bench_progress_erase(&progress);
        }
    }
    fclose(progress.out);
    tap_ok(strchr(text, '\n') == NULL, "there is one line");
    tap_ok(strstr(text, "starting gloo\r") != NULL, "the peer that starts is shown");
    tap_ok(strstr(text, "0 of 4 done: allreduce 8\r") != NULL,
           "no time is estimated before something is done");
    tap_ok(strstr(text, "2 of 4 done, about 20 s left: allreduce 8\r") != NULL,
           "the estimate is proportional to the share that is left");
    tap_ok(length > 4 && strcmp(text + length - 4, "\033[K\r") == 0,
           "the line is erased before something else is printed");
    free(text);
    bench_progress_show(&silent, 0, "allreduce 8", 1);
    bench_progress_erase(&silent);
    tap_ok(!silent.is_drawn, "without a terminal nothing is shown");
    return tap_done();
}
