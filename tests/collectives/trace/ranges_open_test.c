/* SPDX-License-Identifier: Apache-2.0 */
/* ranges_open_test PROFILER: a process begins two jobs; the first wants ranges for the
 * profiler (NVTX), the second does not. */
#include <string.h>
#include <unistd.h>

#include "collectives/trace/ranges.h"
#include "tests/tap.h"

static char log_path[] = "/tmp/hvd_ranges_open_test_XXXXXX";

/* Whether the profiler's log has this content so far. */
static bool has_seen(const char *expected)
{
    char text[512] = "";
    FILE *file = fopen(log_path, "re");

    if (file == NULL) {
        return false;
    }
    text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
    fclose(file);
    if (strcmp(text, expected) != 0) {
        tap_note("seen: %s", text);
    }
    return strcmp(text, expected) == 0;
}

int main(int count, char **arguments)
{
    int file = mkstemp(log_path);
    uint64_t range;

    if (count != 2 || file < 0) {
        printf("Bail out! usage: ranges_open_test PROFILER\n");
        return 1;
    }
    close(file);
    setenv("NVTX_INJECTION64_PATH", arguments[1], 1);
    setenv("FAKE_NVTX_LOG", log_path, 1);
    tap_ok(!hvd_ranges_are_on() && hvd_range_begin(HVD_RANGES_OPS, "a", NULL, -1) == 0,
           "before the first job, there are no ranges");
    hvd_ranges_open(true);
    range = hvd_range_begin(HVD_RANGES_OPS, "HorovodAllreduce", "b", 8);
    tap_ok(hvd_ranges_are_on() && range != 0, "a job that wants ranges has them");
    hvd_ranges_open(false);
    tap_ok(!hvd_ranges_are_on() && hvd_range_begin(HVD_RANGES_OPS, "c", NULL, -1) == 0,
           "a job that does not want them has none");
    hvd_range_end(HVD_RANGES_OPS, range);
    hvd_range_end(HVD_RANGES_OPS, 0);
    tap_ok(has_seen("+0 HorovodOps 8 HorovodAllreduce b\n-0 HorovodOps\n"),
           "a range that has begun can end after that, and one that does not exist, too");
    unlink(log_path);
    return tap_done();
}
