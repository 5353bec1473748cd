/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks record which rank failed first, for hvdrun. */
#include "pmix_boot/cause.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gpu_binding/base/env.h"
#include "tests/tap.h"

static bool is_told(const char *path, int rank, int teller, const char *text)
{
    struct hvd_cause cause;

    return hvd_cause_read(path, &cause) == 0 && cause.rank == rank &&
           cause.teller == teller && strcmp(cause.text, text) == 0;
}

static void write_as(const char *rank, void (*act)(void))
{
    setenv(HVD_ENV_RANK, rank, 1);
    act();
}

static void miss(void)
{
    hvd_cause_miss("allreduce 'x'\ny");
}

static void tell_own(void)
{
    hvd_cause_tell(-1, -1, "cannot start");
}

static void tell_of_2(void)
{
    hvd_cause_tell(2, 0, "rank 2 died");
}

static void check_first(const char *path)
{
    struct hvd_cause cause;

    tap_ok(hvd_cause_read(path, &cause) < 0, "no rank has reported anything");
    hvd_cause_tell(1, 1, "ValueError: boom\nand a second line");
    hvd_cause_tell(2, 0, "rank 2 died");
    tap_ok(is_told(path, 1, 1, "ValueError: boom"), "the first report counts");
    write_as("1", miss);
    tap_ok(hvd_cause_read(path, &cause) == 0 && !cause.is_missed,
           "a failed rank is not missed by its own report");
    write_as("0", miss);
    tap_ok(hvd_cause_read(path, &cause) == 0 && cause.is_missed,
           "a failed rank is missed once another rank says so");
    tap_ok(cause.waiter == 0 && strcmp(cause.operation, "allreduce 'x'") == 0,
           "the operation in which the other rank was is read");
    (void)unlink(path);
    hvd_cause_tell(2, 0, "rank 2 died");
    tap_ok(hvd_cause_read(path, &cause) == 0 && cause.is_missed,
           "a failed rank is missed once another rank reports its failure");
    (void)unlink(path);
}

static void check_jobs(const char *path)
{
    struct hvd_cause cause;

    write_as("0", hvd_cause_begin);
    write_as("1", tell_own);
    write_as("2", hvd_cause_begin);
    tap_ok(hvd_cause_read(path, &cause) < 0, "a failure before the job does not count");
    write_as("0", tell_of_2);
    write_as("1", hvd_cause_begin);
    tap_ok(is_told(path, 2, 0, "rank 2 died"),
           "a rank that is late for the job does not hide a failure");
    write_as("2", hvd_cause_begin);
    tap_ok(hvd_cause_read(path, &cause) < 0,
           "a job that begins anew discards the failure");
    write_as("1", tell_own);
    write_as("0", hvd_cause_begin);
    tap_ok(hvd_cause_read(path, &cause) < 0,
           "a late report about the job before is discarded, too");
    write_as("1", hvd_cause_begin);
    write_as("1", tell_own);
    tap_ok(is_told(path, 1, 1, "cannot start"),
           "a rank that cannot start reports itself");
    (void)unlink(path);
}

/* Reads lines that were cut because a rank was killed while it wrote. */
static void check_part(const char *path)
{
    struct hvd_cause cause;
    FILE *file = fopen(path, "w");

    if (file != NULL) {
        fclose(file);
    }
    tap_ok(hvd_cause_read(path, &cause) < 0, "an empty file has no failure");
    write_as("0", tell_of_2);
    tap_ok(is_told(path, 2, 0, "rank 2 died"), "a failure can be added to an empty file");
    (void)unlink(path);
    file = fopen(path, "w");
    if (file != NULL) {
        fprintf(file, "failed 0 1 0 half a li");
        fclose(file);
    }
    tap_ok(hvd_cause_read(path, &cause) < 0, "a line without an end does not count");
    (void)unlink(path);
}

static void check_text(const char *path)
{
    char lengthy[1000];
    struct hvd_cause cause;

    hvd_cause_tell(2, 0, "");
    tap_ok(is_told(path, 2, 0, ""), "a failure can have no reason");
    (void)unlink(path);
    memset(lengthy, 'x', sizeof(lengthy) - 1);
    lengthy[sizeof(lengthy) - 1] = '\0';
    hvd_cause_tell(3, 3, lengthy);
    tap_ok(hvd_cause_read(path, &cause) == 0 &&
               strlen(cause.text) == sizeof(cause.text) - 1,
           "a reason that is too long is cut");
    (void)unlink(path);
    (void)!symlink("/dev/null", path);
    hvd_cause_tell(3, 3, "through a link");
    tap_ok(hvd_cause_read(path, &cause) < 0, "a link is not written through");
    (void)unlink(path);
}

int main(void)
{
    char directory[] = "/tmp/hvd-cause.XXXXXX";
    char path[64];

    if (mkdtemp(directory) == NULL) {
        printf("Bail out! no directory\n");
        return EXIT_FAILURE;
    }
    snprintf(path, sizeof(path), "%s/cause", directory);
    unsetenv(HVD_ENV_CAUSE);
    hvd_cause_tell(1, 1, "nobody asks");
    setenv(HVD_ENV_CAUSE, path, 1);
    check_first(path);
    check_jobs(path);
    check_part(path);
    check_text(path);
    rmdir(directory);
    return tap_done();
}
