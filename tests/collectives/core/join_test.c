/* SPDX-License-Identifier: Apache-2.0 */
/* The calls that other ranks may make after a rank has joined. Runs as each rank of a
 * job. Rank 0 prints TAP; a rank that finds an error ends with status 1. */
#include <string.h>

#include "tests/collectives/report.h"

enum {
    ROUNDS = 40,
    STEPS = 4,
    ELEMENTS = 1 << 18
};

static int rank, size;
static float inputs[STEPS + 1][ELEMENTS], outputs[STEPS + 1][ELEMENTS];

static struct hvd_request *start_join(void)
{
    struct hvd_request *request = NULL;
    struct hvd_error err = {0};

    if (hvd_join_start(&request, &err) != 0) {
        fprintf(stderr, "# rank %d: %s\n", rank, err.text);
        exit(1);
    }
    return request;
}

static void finish_join(struct hvd_request *request)
{
    struct hvd_error err = {0};

    call_finish(0, &request, &err);
    hvd_request_free(request);
}

static struct hvd_request *start_step(int step)
{
    const int64_t shape[] = {ELEMENTS};
    struct hvd_tensor tensor =
        call_tensor("step", HVD_FLOAT32, shape, 1, inputs[step], outputs[step]);
    struct hvd_request *request = NULL;
    struct hvd_error err = {0};

    for (int i = 0; i < ELEMENTS; i++) {
        inputs[step][i] = (float)(1000 * rank + 10 * step + i % 7);
        outputs[step][i] = -1;
    }
    if (hvd_allreduce_start(&tensor, 1, HVD_SUM, 1, 1, 0, &request, &err) != 0) {
        fprintf(stderr, "# rank %d: %s\n", rank, err.text);
        exit(1);
    }
    return request;
}

/* Waits for a step. Returns whether its result is the sum over all ranks, or over rank 0
 * if is_alone. */
static bool finish_step(struct hvd_request *request, int step, bool is_alone)
{
    float ranks = is_alone ? 1 : (float)size;
    float offset = is_alone ? 0 : 1000 * (float)(size * (size - 1) / 2);
    struct hvd_error err = {0};
    bool good;

    call_finish(0, &request, &err);
    hvd_request_free(request);
    good = true;
    for (int i = 0; good && i < ELEMENTS; i++) {
        good = outputs[step][i] == offset + ranks * (float)(10 * step + i % 7);
    }
    return good;
}

/* All ranks but rank 0 join while their last tensor is still in flight. Rank 0 then
 * starts further tensors with the same name. */
static bool play_last_steps(void)
{
    struct hvd_request *request = start_step(0);
    bool good = true;

    if (rank == 0) {
        good = finish_step(request, 0, false);
        for (int step = 1; step <= STEPS; step++) {
            good &= finish_step(start_step(step), step, true);
        }
        call_join();
    } else {
        struct hvd_request *join = start_join();

        good = finish_step(request, 0, false);
        finish_join(join);
    }
    return good;
}

static void keep_tensors_apart(void)
{
    bool good = true;

    for (int i = 0; i < ROUNDS && good; i++) {
        good = play_last_steps();
    }
    report_alone(good, "a tensor that runs when its rank joins is not taken for the next "
                       "one of its name");
}

static void keep_barriers_in_step(void)
{
    if (rank == 0) { /* these barriers end only when the other ranks have joined */
        call_barrier();
        call_barrier();
    }
    call_join();
    call_barrier();
    report_alone(true, "barriers work while some ranks have joined, and after all have");
}

static int end(int status, struct hvd_request *request, struct hvd_error *err)
{
    if (status == 0) {
        status = hvd_wait(request, err);
    }
    hvd_request_free(request);
    return status;
}

static int add_set(int only, struct hvd_error *err)
{
    struct hvd_request *request = NULL;
    int status = hvd_set_add_start(&only, 1, &request, err);

    return end(status, request, err);
}

static void refuse_sets(void)
{
    struct hvd_error err = {0};
    bool good = true;

    if (rank == 0) {
        good = add_set(0, &err) == HVD_ERR_MISMATCH &&
               strstr(err.text, "after a rank has joined") != NULL;
    }
    call_join();
    report_alone(good, "a process set cannot be added while a rank has joined");
    report_alone(add_set(0, &err) == 0 && hvd_set_count() == 2,
                 "after all ranks have joined, a process set can be added");
}

/* Submits the tensor "late" and waits for it. Returns its status. */
static int submit_late(struct hvd_error *err)
{
    static float value;
    struct hvd_tensor tensor = call_tensor("late", HVD_FLOAT32, NULL, 0, &value, &value);
    struct hvd_request *request = NULL;
    int status = hvd_allreduce_start(&tensor, 1, HVD_SUM, 1, 1, 0, &request, err);

    return end(status, request, err);
}

/* Adds a set of rank 0 and the last rank. Rank 0 may use it even after it has joined. */
static int add_pair(void)
{
    const int ranks[] = {0, size - 1};

    return call_set_add(ranks, 2);
}

static void meet(int set)
{
    struct hvd_request *request = NULL;
    struct hvd_error err = {0};

    call_finish(hvd_barrier_start(set, &request, &err), &request, &err);
    hvd_request_free(request);
}

/* Rank 0 joins while the others go on, and still submits tensors, which are refused. The
 * last rank joins only after it has met rank 0 in the set of the two, so the join is not
 * complete before that. */
static void refuse_late_tensors(void)
{
    int pair = add_pair();
    struct hvd_error err = {0};
    struct hvd_request *join = NULL;
    bool good = true;

    if (rank == 0) {
        join = start_join();
        for (int i = 0; i < STEPS && good; i++) {
            good = submit_late(&err) == HVD_ERR_ARG &&
                   strstr(err.text, "submitted late after it had joined") != NULL;
        }
    } else {
        for (int i = 0; i < STEPS && good; i++) {
            good = submit_late(&err) == 0;
        }
    }
    if (rank == 0 || rank == size - 1) {
        meet(pair);
    }
    join = rank == 0 ? join : start_join();
    finish_join(join);
    report_alone(good,
                 "a tensor that a rank submits after its join is refused on that rank");
    call_set_remove(pair);
    report_alone(submit_late(&err) == 0,
                 "after all ranks have joined, the rank may submit the tensor");
}

int main(void)
{
    rank = report_init();
    size = hvd_size();
    keep_tensors_apart();
    keep_barriers_in_step();
    /* with two ranks, the pair would have the same ranks as the global set */
    if (size > 2) {
        refuse_late_tensors();
    }
    refuse_sets();
    hvd_shutdown();
    return report_done();
}
