/* SPDX-License-Identifier: Apache-2.0 */
/* Tests the times that hvd_gpu.so measures on the device: gpu_module_times_test MODULE,
 * on the stand-in. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/collectives/gpu/module/module_pass.h"
#include "tests/fake_gpu/fake_cuda.h"
#include "tests/tap.h"

static int64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static bool follow_each_other(const struct hvd_gpu_span *spans, int count,
                              int64_t begin_ns, int64_t end_ns)
{
    const int64_t slack_ns = 20000000000; /* longer than any delay on a loaded machine */

    for (int i = 0; i < count; i++) {
        if (spans[i].begin_ns < begin_ns - slack_ns ||
            spans[i].end_ns > end_ns + slack_ns || spans[i].end_ns < spans[i].begin_ns ||
            (i > 0 && spans[i].kind != HVD_GPU_AWAITS &&
             spans[i].begin_ns != spans[i - 1].end_ns)) {
            tap_note("span %d: %" PRId64 " us to %" PRId64 " us of %" PRId64 " us", i,
                     (spans[i].begin_ns - begin_ns) / 1000,
                     (spans[i].end_ns - begin_ns) / 1000, (end_ns - begin_ns) / 1000);
            return false;
        }
    }
    return true;
}

/* Runs work that is measured. Returns the number of spans. */
static int measure(struct pass *pass, struct hvd_gpu_span *spans)
{
    struct hvd_gpu_step steps[] = {
        {.kind = HVD_GPU_FOLLOW, .event = pass->ready},
        {.kind = HVD_GPU_COPY,
         .from = pass->memory,
         .to = pass->memory,
         .count = PASS_BYTES},
        {.kind = HVD_GPU_GROUP},
        {.kind = HVD_GPU_BROADCAST,
         .from = pass->memory,
         .to = pass->memory,
         .count = PASS_BYTES,
         .dtype = HVD_UINT8},
        {.kind = HVD_GPU_GROUP_END},
        {.kind = HVD_GPU_ZERO, .to = pass->memory, .count = PASS_BYTES},
    };
    struct hvd_gpu_work work = {
        .queue = HVD_GPU_COLLECT, .comm = pass->comm, .steps = steps, .count = 6};
    struct hvd_gpu_timing *timing = NULL;
    int count = 0;

    if (pass_module->timing_create(pass->device, &timing, &pass->err) == 0) {
        work.timing = timing;
        count = pass_run(pass, &work) == 0 && pass_await(pass, pass->done) == 0
                    ? pass_module->timing_read(timing, spans)
                    : 0;
        pass_module->timing_destroy(timing);
    }
    return count;
}

static void test_times(void)
{
    static const enum hvd_gpu_span_kind kinds[] = {
        HVD_GPU_CONNECTS, HVD_GPU_AWAITS, HVD_GPU_MOVES, HVD_GPU_COLLECTS, HVD_GPU_MOVES};
    struct hvd_gpu_span spans[HVD_GPU_MOST_SPANS] = {{0}};
    struct pass pass = {0};
    int64_t begin_ns = now_ns();
    bool good = pass_open(&pass) == 0 && measure(&pass, spans) == 5;

    for (int i = 0; i < 5 && good; i++) {
        good = spans[i].kind == kinds[i];
    }
    tap_ok(good && spans[3].step == HVD_GPU_BROADCAST,
           "the spans show what the work did");
    tap_ok(good && follow_each_other(spans, 5, begin_ns, now_ns()),
           "and when, in the host's clock, although the device has another clock");
    fake_gpu_skip_time(3600e3);
    pass_pause_ms(1001); /* the module reads the device's clock again after a second */
    begin_ns = now_ns();
    tap_ok(measure(&pass, spans) == 4 && follow_each_other(spans, 4, begin_ns, now_ns()),
           "also after the device's clock has jumped ahead");
    pass_close(&pass);
    tap_ok(!pass_has_left(), "no object is left");
}

/* Makes the k-th call of this function fail (NULL: of any function). Returns whether no
 * time was measured. */
static bool is_missing(const char *function, long k, bool *good)
{
    struct hvd_gpu_span spans[HVD_GPU_MOST_SPANS];
    struct pass pass = {0};
    const char *failed;
    int count;

    *good = *good && pass_open(&pass) == 0 && pass_go_around(&pass) == 0;
    fake_gpu_fail_in(function, k);
    count = measure(&pass, spans);
    failed = fake_gpu_failed();
    fake_gpu_fail_at(0);
    if (failed != NULL && strcmp(failed, "cuEventElapsedTime") == 0) {
        *good = *good && count == 0 && pass.err.text[0] == '\0';
    }
    *good = *good && (function == NULL || failed != NULL);
    pass_close(&pass);
    return count == 0;
}

/* The work succeeds even if a call for its measurement fails. */
static void test_times_missing(void)
{
    bool good = true;
    int missing = 0;

    for (long k = 1; k < 30; k++) {
        missing += is_missing(NULL, k, &good);
    }
    for (long k = 1; k < 4; k++) {
        missing += is_missing("cuEventElapsedTime", k, &good);
    }
    tap_ok(good && missing > 5, "work runs even if it cannot be measured (%d times)",
           missing);
    tap_ok(!pass_has_left(), "no object is left");
}

int main(int argc, char **argv)
{
    char seed[16];

    snprintf(seed, sizeof(seed), "%u", tap_seed((unsigned)time(NULL)));
    setenv("FAKE_GPU_SEED", seed, 1);
    if (tap_ok(argc == 2 && pass_load(argv[1]), "the module can be loaded")) {
        test_times();
        test_times_missing();
    }
    return tap_done();
}
