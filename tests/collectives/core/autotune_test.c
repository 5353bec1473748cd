/* SPDX-License-Identifier: Apache-2.0 */
/* The autotuner tries settings while a job trains; all sums must stay right. Rank 0
 * prints TAP. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/collectives/calls.h"
#include "tests/tap.h"

enum {
    TENSORS = 12,
    STEPS = 540, /* more than the tuner takes until it has found its setting */
    /* The fewest samples that the tuner takes: the defaults and some other settings. It
     * takes more on some machines. */
    SAMPLES = 5,
    STEPS_PER_SAMPLE = 9, /* the fewest steps of a complete sample */
    /* The fewest steps of a sample that ends early because its setting is far slower.
     * This is frequent on a busy machine. */
    LEAST_STEPS = 3,
};

static float values[TENSORS][4096];
static char log_path[] = "/tmp/hvd_autotune_test_XXXXXX";

/* Plays one step: starts all sums, from the last to the first, and waits for them.
 * Returns whether all are right. */
static bool step(int number)
{
    struct hvd_request *requests[TENSORS];
    struct hvd_error err = {0};
    bool is_right = true;

    for (int i = TENSORS - 1; i >= 0; i--) {
        const int64_t count = 256 * (i + 1);
        struct hvd_tensor tensor;
        char name[16];

        for (int64_t k = 0; k < count; k++) {
            values[i][k] = (float)(number + i + hvd_rank());
        }
        snprintf(name, sizeof(name), "gradient%d", i);
        tensor = call_tensor(name, HVD_FLOAT32, &count, 1, values[i], values[i]);
        if (hvd_allreduce_start(&tensor, 1, HVD_SUM, 1, 1, 0, &requests[i], &err) != 0) {
            return false;
        }
    }
    for (int i = 0; i < TENSORS; i++) {
        const int size = hvd_size();
        const float sum = (float)(size * (number + i) + size * (size - 1) / 2);

        call_finish(0, &requests[i], &err);
        hvd_request_free(requests[i]);
        is_right &= values[i][0] == sum && values[i][256 * (i + 1) - 1] == sum;
    }
    return is_right;
}

static long log_bytes(void)
{
    FILE *file = fopen(log_path, "r");
    long bytes = -1;

    if (file != NULL) {
        fseek(file, 0, SEEK_END);
        bytes = ftell(file);
        fclose(file);
    }
    return bytes;
}

/* Counts the rows of numbers in the log: one for each sample, then one for the result. */
static int log_rows(void)
{
    FILE *file = fopen(log_path, "r");
    char line[256];
    int rows = -1; /* the first line has the names of the columns */

    while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
        rows++;
    }
    if (file != NULL) {
        fclose(file);
    }
    return rows;
}

static void set_up(void)
{
    int fd = mkstemp(log_path);

    if (fd < 0) {
        printf("Bail out! cannot make %s\n", log_path);
        exit(1);
    }
    close(fd);
    setenv("HOROVOD_AUTOTUNE", "1", 1);
    setenv("HOROVOD_AUTOTUNE_LOG", log_path, 1);
}

int main(void)
{
    bool is_right = true;
    int rank, settled = 0;
    long bytes = 0;

    set_up();
    rank = call_init();
    for (int number = 0; number < STEPS; number++) {
        is_right &= step(number);
        if (log_bytes() != bytes) {
            bytes = log_bytes();
            settled = number + 1;
        }
    }
    if (rank == 0) {
        tap_ok(is_right, "sums are right while the autotuner is at work");
        tap_ok(settled >= SAMPLES * STEPS_PER_SAMPLE && settled <= 500,
               "the autotuner has settled after %d steps", settled);
        tap_ok(log_rows() > SAMPLES && log_rows() <= settled / LEAST_STEPS + 1,
               "the log has a row for each sample, and the result (%d)", log_rows());
    }
    is_right &= rank == 0 || bytes == 0; /* only rank 0 has a log */
    hvd_shutdown();
    unlink(log_path);
    return rank == 0 ? tap_done() : is_right ? 0 : 1;
}
