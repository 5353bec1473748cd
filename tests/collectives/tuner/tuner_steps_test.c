/* SPDX-License-Identifier: Apache-2.0 */
/* Tests which steps of a training job the autotuner counts, and its log. */
#include "collectives/tuner/tuner.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "tests/collectives/logged.h"
#include "tests/tap.h"

static struct hvd_tuner *make_tuner(const char *log)
{
    const struct hvd_tuner_options options = {
        .defaults = {.fusion_threshold = 128 << 20, .cycle_time_ms = 1},
        .warmup_samples = 1,
        .steps_per_sample = 10,
        .max_trials = 8,
        .log = log};
    struct hvd_tuner *tuner = NULL;

    if (hvd_tuner_create(&options, &tuner, NULL) != 0) {
        printf("Bail out! no memory\n");
        exit(1);
    }
    return tuner;
}

/* Runs one step of a job that is twice as fast with a threshold of at most 16 MiB. */
static int64_t step(struct hvd_tuner *tuner, int64_t now_us, const char *largest)
{
    bool is_good = hvd_tuner_setting(tuner)->fusion_threshold <= 16 << 20;

    now_us += is_good ? 1000 : 2000;
    hvd_tuner_ended(tuner, "small", 1000, now_us);
    hvd_tuner_ended(tuner, largest, 1000000, now_us);
    hvd_tuner_ended(tuner, "next", 500000, now_us);
    return now_us;
}

static void test_other_tensors(void)
{
    struct hvd_tuner *tuner = make_tuner(NULL);
    int64_t now_us = 1;
    int steps = 0;

    while (!hvd_tuner_is_over(tuner) && steps < 1000) {
        now_us = step(tuner, now_us, "largest");
        for (int i = 0; steps % 50 == 10 && i < 300; i++) { /* an evaluation */
            hvd_tuner_ended(tuner, "metric", 8, now_us += 3000);
        }
        steps++;
    }
    tap_ok(steps < 360 && hvd_tuner_setting(tuner)->fusion_threshold <= 16 << 20,
           "metrics do not count as steps: over after %d steps", steps);
    hvd_tuner_destroy(tuner);
}

/* Tests a job that first averages only metrics, then trains a model, then another
 * model. */
static void test_other_models(void)
{
    struct hvd_tuner *tuner = make_tuner(NULL);
    int64_t now_us = 1;
    int steps = 0;

    for (int i = 0; i < 5; i++) {
        hvd_tuner_ended(tuner, "metric", 8, now_us += 1000);
    }
    while (!hvd_tuner_is_over(tuner) && steps < 1000) {
        now_us = step(tuner, now_us, steps < 100 ? "largest" : "other");
        steps++;
    }
    tap_ok(steps < 360 && hvd_tuner_setting(tuner)->fusion_threshold <= 16 << 20,
           "tuning goes on after a change of the model: over after %d steps", steps);
    hvd_tuner_destroy(tuner);
}

/* --- the log --- */

static const char header[] =
    "hierarchical_allreduce,hierarchical_allgather,torus_allreduce,cache_enabled,"
    "cycle_time_ms,tensor_fusion_threshold,score\n";

static void run_to_end(struct hvd_tuner *tuner)
{
    int64_t now_us = 1;

    for (int i = 0; i < 1000 && !hvd_tuner_is_over(tuner); i++) {
        now_us = step(tuner, now_us, "largest");
    }
}

static void check_rows(FILE *file, const struct hvd_tuner *tuner)
{
    double threshold = (double)hvd_tuner_setting(tuner)->fusion_threshold / (1 << 20);
    double cycle = hvd_tuner_setting(tuner)->cycle_time_ms;
    double values[7] = {0}, best = 0;
    char line[256];
    int rows = 0;
    bool all_well = true;

    tap_ok(fgets(line, sizeof(line), file) != NULL && strcmp(line, header) == 0,
           "the log begins with Horovod's columns");
    while (fgets(line, sizeof(line), file) != NULL) {
        int length = 0;

        all_well &= sscanf(line, "%lf,%lf,%lf,%lf,%lf,%lf,%lf%n", &values[0], &values[1],
                           &values[2], &values[3], &values[4], &values[5], &values[6],
                           &length) == 7 &&
                    line[length] == '\n' && values[6] > 0;
        best = fmax(best, values[6]);
        rows++;
    }
    tap_ok(all_well && rows > 20,
           "%d rows have as many numbers as the header has columns", rows);
    tap_ok(values[4] == cycle && values[5] == threshold,
           "the last row is the final setting: %g ms, %g MiB", cycle, threshold);
    tap_ok(values[6] > 0.9 * best && fabs(best - 1501) < 10,
           "the last row has the best score, in bytes/us");
}

static void test_log(void)
{
    char path[] = "/tmp/hvd_tuner_test_XXXXXX";
    int fd = mkstemp(path);
    struct hvd_tuner *tuner;
    FILE *file;

    if (fd < 0) {
        printf("Bail out! %s: %s\n", path, strerror(errno));
        exit(1);
    }
    close(fd);
    logged_begin();
    tuner = make_tuner(path);
    run_to_end(tuner);
    tap_ok(logged_count(HVD_LOG_WARN) == 0,
           "there is no warning if the log can be written");
    file = fopen(path, "r");
    if (file != NULL) {
        check_rows(file, tuner);
        fclose(file);
    }
    hvd_tuner_destroy(tuner);
    unlink(path);
}

static void test_bad_log(const char *path, int error)
{
    struct hvd_tuner *tuner;

    logged_begin();
    tuner = make_tuner(path);
    run_to_end(tuner);
    tap_ok(logged_count(HVD_LOG_WARN) == 1 && logged_has(HVD_LOG_WARN, path) &&
               logged_has(HVD_LOG_WARN, strerror(error)),
           "%s: one warning with the file name and the reason", path);
    logged_show();
    tap_ok(hvd_tuner_is_over(tuner), "tuning goes on without a log");
    hvd_tuner_destroy(tuner);
}

int main(void)
{
    test_other_tensors();
    test_other_models();
    test_log();
    test_bad_log("/no/such/directory/log.csv", ENOENT);
    test_bad_log("/dev/full", ENOSPC);
    return tap_done();
}
