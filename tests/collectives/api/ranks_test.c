/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs that consist of some of the launcher's ranks (hvd_init_ranks): several at the same
 * time, several one after the other, and invalid lists of ranks. Rank 0 of the launch
 * prints TAP; a rank that finds an error ends with status 1. */
#include <stdlib.h>
#include <string.h>

#include "tests/collectives/calls.h"
#include "tests/tap.h"

enum {
    MAX_RANKS = 64
};

static int launched, launched_size, bad;

static void report(bool good, const char *what)
{
    bad += good ? 0 : 1;
    if (launched == 0) {
        tap_ok(good, "%s", what);
    } else if (!good) {
        fprintf(stderr, "# rank %d of the launch: not ok: %s\n", launched, what);
    }
}

static double sum_over_job(double value)
{
    double sum = 0;
    struct hvd_tensor tensor = call_tensor("sum", HVD_FLOAT64, NULL, 0, &value, &sum);

    call_allreduce(&tensor, 1, HVD_SUM, 1, 1, 0);
    return sum;
}

/* Whether the ranks of the job are numbered in the order of the list: each one broadcasts
 * its number in the launch. */
static bool has_order_of(const int *list, int count)
{
    bool is_right = true;

    for (int i = 0; i < count; i++) {
        int32_t number = launched;
        struct hvd_tensor tensor =
            call_tensor("order", HVD_INT32, NULL, 0, &number, &number);

        call_broadcast(&tensor, i, 0);
        is_right &= number == list[i] && hvd_host(i) != NULL;
    }
    return is_right;
}

/* Starts a job of the ranks in the list, which contains this rank, checks the job, and
 * leaves it. */
static bool run_job(const int *list, int count)
{
    struct hvd_error err = {0};
    double sum = 0;
    int place = -1;
    bool is_right;

    for (int i = 0; i < count; i++) {
        sum += list[i];
        place = list[i] == launched ? i : place;
    }
    if (hvd_init_ranks(list, count, &err) != 0) {
        fprintf(stderr, "# rank %d of the launch: %s\n", launched, err.text);
        return false;
    }
    is_right = hvd_rank() == place && hvd_size() == count && has_order_of(list, count) &&
               sum_over_job(launched) == sum;
    hvd_shutdown();
    return is_right && !hvd_is_initialized();
}

/* Makes a list of every step-th rank from `first` on, in descending order if
 * is_turned. */
static int make_list(int *list, int first, int step, bool is_turned)
{
    int count = 0;

    for (int rank = first; rank < launched_size; rank += step) {
        list[count++] = rank;
    }
    for (int i = 0; is_turned && i < count / 2; i++) {
        int kept = list[i];

        list[i] = list[count - 1 - i];
        list[count - 1 - i] = kept;
    }
    return count;
}

static bool run_every(int step, bool is_turned)
{
    int list[MAX_RANKS];
    int count = make_list(list, launched % step, step, is_turned);

    return run_job(list, count);
}

static void test_jobs(void)
{
    struct hvd_error err = {0};
    bool is_right = true;

    report(run_every(2, false), "even and odd ranks form two jobs at the same time");
    report(run_every(2, true), "ranks are numbered in the order of the list");
    report(run_every(launched_size, false), "each rank can form a job of its own");
    report(run_every(1, true), "all ranks form a job in reverse order");
    is_right =
        hvd_init(&err) == 0 && hvd_rank() == launched && hvd_size() == launched_size;
    is_right = is_right && sum_over_job(1) == launched_size;
    hvd_shutdown();
    report(is_right, "a job of the whole launch works afterwards");
    is_right = true;
    for (int i = 0; i < 12; i++) {
        is_right &= run_every(1 + i % 3, i % 2 != 0);
    }
    report(is_right,
           "each rank joins twelve jobs one after the other, with different ranks");
}

static bool is_refused(const int *list, int count, const char *text)
{
    struct hvd_error err = {0};
    int status = hvd_init_ranks(list, count, &err);

    if (status != HVD_ERR_ARG || strstr(err.text, text) == NULL) {
        fprintf(stderr, "# rank %d of the launch: %d %s\n", launched, status, err.text);
    }
    return status == HVD_ERR_ARG && strstr(err.text, text) != NULL &&
           !hvd_is_initialized();
}

static void test_lists_that_cannot_be(void)
{
    int other = (launched + 1) % launched_size;

    report(is_refused(NULL, 1, "needs a list"), "a missing list is refused");
    report(is_refused(&other, 0, "0 ranks"), "an empty list is refused");
    report(is_refused((int[]){launched, -1}, 2, "no rank -1"),
           "a negative rank is refused");
    report(is_refused((int[]){launched, launched_size}, 2, "there is no rank"),
           "a rank above the last one is refused");
    report(is_refused((int[]){launched, launched}, 2, "twice"),
           "a rank that is listed twice is refused");
    if (launched_size > 1) {
        report(is_refused(&other, 1, "is not in the list"),
               "a list without the calling rank is refused");
    }
    report(run_every(2, false), "a correct list is accepted after that");
}

/* ranks_test SIZE: the number of ranks that the launcher starts. */
int main(int argc, char **argv)
{
    const char *rank = getenv("HOROVOD_RANK");

    launched = rank != NULL ? atoi(rank) : 0;
    launched_size = argc > 1 ? atoi(argv[1]) : 1;
    test_jobs();
    test_lists_that_cannot_be();
    return launched == 0 ? tap_done() : bad != 0;
}
