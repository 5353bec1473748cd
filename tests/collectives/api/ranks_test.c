/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs of some of the launcher's ranks: side by side, one after the other, and lists that
 * cannot be. Rank 0 of the launch prints TAP; a rank that finds something wrong ends with
 * 1 besides. */
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

/* The launch's number of each rank of the job, as the ranks say it themselves. */
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

/* Starts a job of the list, which names this rank, uses it, leaves it. */
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

/* Every step-th rank from `first` on; in descending order if so wanted. */
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

    report(run_every(2, false), "even and odd ranks are two jobs at the same time");
    report(run_every(2, true), "the order of the list is that of the ranks");
    report(run_every(launched_size, false), "a job of one rank for each");
    report(run_every(1, true), "all ranks, the last one first");
    is_right =
        hvd_init(&err) == 0 && hvd_rank() == launched && hvd_size() == launched_size;
    is_right = is_right && sum_over_job(1) == launched_size;
    hvd_shutdown();
    report(is_right, "and all of the launch again");
    is_right = true;
    for (int i = 0; i < 12; i++) {
        is_right &= run_every(1 + i % 3, i % 2 != 0);
    }
    report(is_right, "twelve jobs one after the other, each with others");
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

    report(is_refused(NULL, 1, "needs a list"), "no list is refused");
    report(is_refused(&other, 0, "0 ranks"), "an empty one is");
    report(is_refused((int[]){launched, -1}, 2, "no rank -1"), "a negative rank is");
    report(is_refused((int[]){launched, launched_size}, 2, "there is no rank"),
           "a rank above the last is");
    report(is_refused((int[]){launched, launched}, 2, "twice"), "a rank twice is");
    if (launched_size > 1) {
        report(is_refused(&other, 1, "is not in the list"),
               "a list without the rank that calls is");
    }
    report(run_every(2, false), "and the next one that is right is taken");
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
