/* SPDX-License-Identifier: Apache-2.0 */
/* A rank of contrib/bench/soak.sh: as many steps as a long training has. Each step
 * reduces the gradients of a small model; between them are all other collectives,
 * messages, and process sets that come and go. All results are checked. Rank 0 prints
 * the progress and a verdict.
 *
 * usage: soak_ranks STEPS
 *
 * Resources of the processes are compared with those after a tenth of the steps. A
 * failure or a wrong result ends the rank with its error, on standard error, and exit
 * status 3. */
#include <dirent.h>
#include <malloc.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collectives/hvd.h"
#include "gpu_binding/base/clock.h"

/* Elements of each gradient. */
static const int64_t counts[] = {1, 3, 150, 6, 2400, 16, 9000, 120, 84, 840, 10, 513};

enum {
    GRADIENTS = sizeof(counts) / sizeof(counts[0]),
    ELEMENTS = 13143, /* of all gradients */
    MANY = 40000, /* elements of the large buffers */
    RARELY = 50, /* steps between two changes of process sets */
    JOIN_PERIOD = 10 * RARELY, /* steps between two joins */
    WARM_PART = 10,
    SLACK_KIB = 1024, /* growth of the memory that is not a leak */
    FEW_STEPS = 2000, /* fewer do not tell growth from a start */
};

static struct {
    int rank, size;
    int64_t step;
    int64_t calls;
    float gradients[ELEMENTS];
    int32_t input[MANY], output[MANY];
} soak;

/* --- ends --- */

static void fail(const char *call, const char *reason)
{
    fprintf(stderr, "soak: rank %d, step %lld, %s: %s\n", soak.rank, (long long)soak.step,
            call, reason);
    fflush(stderr);
    hvd_shutdown();
    exit(3);
}

static void expect(int64_t found, int64_t expected, const char *call)
{
    char reason[100];

    if (found != expected) {
        snprintf(reason, sizeof(reason), "WRONG RESULT %lld instead of %lld",
                 (long long)found, (long long)expected);
        fail(call, reason);
    }
}

/* Waits for the request whose start returned `status`, but does not free it. */
static void await(int status, struct hvd_request **request, struct hvd_error *err,
                  const char *call)
{
    if (status != 0 || hvd_wait(*request, err) != 0) {
        fail(call, err->text);
    }
    soak.calls++;
}

static void finish(int status, struct hvd_request **request, struct hvd_error *err,
                   const char *call)
{
    await(status, request, err, call);
    hvd_request_free(*request);
}

/* --- values --- */

/* A small number, so that sums are exact. */
static int32_t value_of(int rank, int64_t i)
{
    return (int32_t)((i * 7 + soak.step * 5 + (int64_t)rank * 3) % 101);
}

static int64_t sum_of(int64_t i)
{
    int64_t sum = 0;

    for (int rank = 0; rank < soak.size; rank++) {
        sum += value_of(rank, i);
    }
    return sum;
}

static void fill_input(int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        soak.input[i] = value_of(soak.rank, i);
    }
    memset(soak.output, 0xff, sizeof(soak.output));
}

static struct hvd_tensor tensor_of(const char *name, const int64_t *count)
{
    return (struct hvd_tensor){.name = name,
                               .input = soak.input,
                               .output = soak.output,
                               .shape = count,
                               .ndim = 1,
                               .dtype = HVD_INT32,
                               .device = HVD_DEVICE_CPU};
}

/* --- calls --- */

/* Reduces the gradients: every second one by itself, the others as one group. */
static void reduce_gradients(void)
{
    struct hvd_tensor tensors[GRADIENTS], group[GRADIENTS];
    struct hvd_request *requests[GRADIENTS] = {NULL};
    char names[GRADIENTS][16];
    struct hvd_error err = {0};
    int grouped = 0;
    int64_t at = 0;

    for (int64_t i = 0; i < ELEMENTS; i++) {
        soak.gradients[i] = (float)value_of(soak.rank, i);
    }
    for (int i = 0; i < GRADIENTS; at += counts[i++]) {
        snprintf(names[i], sizeof(names[i]), "gradient %d", i);
        tensors[i] = tensor_of(names[i], &counts[i]);
        tensors[i].input = &soak.gradients[at];
        tensors[i].output = &soak.gradients[at];
        tensors[i].dtype = HVD_FLOAT32;
        if (i % 2 == 1) {
            group[grouped++] = tensors[i];
        } else if (hvd_allreduce_start(&tensors[i], 1, HVD_SUM, 1, 1, 0, &requests[i],
                                       &err) != 0) {
            fail("allreduce", err.text);
        }
    }
    finish(hvd_allreduce_start(group, grouped, HVD_SUM, 1, 1, 0, &requests[1], &err),
           &requests[1], &err, "grouped allreduce");
    for (int i = 0; i < GRADIENTS; i += 2) {
        finish(0, &requests[i], &err, "allreduce");
    }
    for (int64_t i = 0; i < ELEMENTS; i++) {
        expect((int64_t)soak.gradients[i], sum_of(i), "allreduce");
    }
}

static void reduce_numbers(void)
{
    const int64_t count = soak.step % MANY + 1;
    struct hvd_tensor tensor = tensor_of("numbers", &count);
    struct hvd_request *request = NULL;
    struct hvd_error err = {0};

    fill_input(count);
    finish(hvd_allreduce_start(&tensor, 1, HVD_MAX, 1, 1, 0, &request, &err), &request,
           &err, "allreduce of integers");
    for (int64_t i = 0; i < count; i++) {
        int32_t most = 0;

        for (int rank = 0; rank < soak.size; rank++) {
            most = value_of(rank, i) > most ? value_of(rank, i) : most;
        }
        expect(soak.output[i], most, "allreduce of integers");
    }
}

static void broadcast(void)
{
    const int64_t count = soak.step * 13 % MANY + 1;
    const int root = (int)(soak.step % soak.size);
    struct hvd_tensor tensor = tensor_of("broadcast", &count);
    struct hvd_request *request = NULL;
    struct hvd_error err = {0};

    fill_input(count);
    finish(hvd_broadcast_start(&tensor, root, 0, &request, &err), &request, &err,
           "broadcast");
    for (int64_t i = 0; i < count; i++) {
        expect(soak.output[i], value_of(root, i), "broadcast");
    }
}

/* Rows that this rank gives to an allgather; some ranks give none. */
static int64_t rows_of(int rank)
{
    return (soak.step + (int64_t)rank * 7) % 11 * 40;
}

static void gather(void)
{
    const int64_t count = rows_of(soak.rank);
    struct hvd_tensor tensor = tensor_of("gather", &count);
    struct hvd_request *request = NULL;
    struct hvd_error err = {0};
    int64_t rows = 0, at = 0, total = 0;
    void *data = NULL;

    fill_input(count);
    await(hvd_allgather_start(&tensor, 1, 0, &request, &err), &request, &err,
          "allgather");
    expect(hvd_request_take(request, 0, &data, &rows), 0, "hvd_request_take");
    hvd_request_free(request);
    for (int rank = 0; rank < soak.size; rank++) {
        total += rows_of(rank);
    }
    expect(rows, total, "allgather");
    for (int rank = 0; rank < soak.size; rank++) {
        for (int64_t i = 0; i < rows_of(rank); i++) {
            expect(((const int32_t *)data)[at++], value_of(rank, i), "allgather");
        }
    }
    hvd_free(data);
}

static void scatter_sums(void)
{
    const int64_t each = soak.step % 300, count = each * soak.size;
    struct hvd_tensor tensor = tensor_of("scatter", &count);
    struct hvd_request *request = NULL;
    struct hvd_error err = {0};

    fill_input(count);
    finish(hvd_reducescatter_start(&tensor, 1, HVD_SUM, 1, 1, 0, &request, &err),
           &request, &err, "reducescatter");
    for (int64_t i = 0; i < each; i++) {
        expect(soak.output[i], sum_of(soak.rank * each + i), "reducescatter");
    }
}

/* Rows that a rank sends to each other rank. */
static int32_t split_of(int from, int to)
{
    return (int32_t)((soak.step + (int64_t)from * 5 + (int64_t)to * 3) % 9 * 20);
}

static int64_t split_begin(int from, int to)
{
    int64_t begin = 0;

    for (int rank = 0; rank < to; rank++) {
        begin += split_of(from, rank);
    }
    return begin;
}

static void exchange(void)
{
    const int64_t count = split_begin(soak.rank, soak.size);
    struct hvd_tensor tensor = tensor_of("exchange", &count);
    int32_t *splits = calloc((size_t)(soak.size > 0 ? soak.size : 1), sizeof(*splits));
    struct hvd_request *request = NULL;
    struct hvd_error err = {0};
    int64_t at = 0;

    if (splits == NULL) {
        fail("alltoall", "no memory");
        return;
    }
    for (int rank = 0; rank < soak.size; rank++) {
        splits[rank] = split_of(soak.rank, rank);
    }
    fill_input(count);
    tensor.output_bytes = sizeof(soak.output);
    finish(hvd_alltoall_start(&tensor, splits, soak.size, 0, &request, &err), &request,
           &err, "alltoall");
    for (int rank = 0; rank < soak.size; rank++) {
        for (int64_t i = 0; i < split_of(rank, soak.rank); i++) {
            expect(soak.output[at++], value_of(rank, split_begin(rank, soak.rank) + i),
                   "alltoall");
        }
    }
    free(splits);
}

/* Sends to the next rank, and receives from the one before. */
static void pass_messages(void)
{
    const int64_t count = soak.step * 17 % MANY + 1;
    const int next = (soak.rank + 1) % soak.size;
    const int before = (soak.rank + soak.size - 1) % soak.size;
    struct hvd_tensor tensor = tensor_of("message", &count);
    struct hvd_request *requests[2] = {NULL};
    struct hvd_error err = {0};

    fill_input(count);
    if (hvd_recv_start(&tensor, before, soak.step, 0, &requests[0], &err) != 0) {
        fail("recv", err.text);
    }
    finish(hvd_send_start(&tensor, next, soak.step, 0, &requests[1], &err), &requests[1],
           &err, "send");
    finish(0, &requests[0], &err, "recv");
    for (int64_t i = 0; i < count; i++) {
        expect(soak.output[i], value_of(before, i), "recv");
    }
}

static void meet(void)
{
    struct hvd_request *request = NULL;
    struct hvd_error err = {0};

    finish(hvd_barrier_start(0, &request, &err), &request, &err, "barrier");
}

/* Adds a process set of all ranks but one, uses it, and removes it. */
static void use_set(void)
{
    const int left_out = (int)(soak.step / RARELY % soak.size);
    const int64_t count = 100;
    struct hvd_tensor tensor = tensor_of("set", &count);
    int *ranks = calloc((size_t)soak.size, sizeof(*ranks));
    struct hvd_request *request = NULL;
    struct hvd_error err = {0};
    int members = 0, set;

    for (int rank = 0; ranks != NULL && rank < soak.size; rank++) {
        if (rank != left_out) {
            ranks[members++] = rank;
        }
    }
    await(hvd_set_add_start(ranks, members, &request, &err), &request, &err, "add a set");
    set = hvd_request_set(request);
    hvd_request_free(request);
    if (soak.rank != left_out) {
        fill_input(count);
        finish(hvd_allreduce_start(&tensor, 1, HVD_SUM, 1, 1, set, &request, &err),
               &request, &err, "allreduce in a set");
    }
    for (int64_t i = 0; i < count && soak.rank != left_out; i++) {
        expect(soak.output[i], sum_of(i) - value_of(left_out, i), "allreduce in a set");
    }
    finish(hvd_set_remove_start(set, &request, &err), &request, &err, "remove a set");
    free(ranks);
}

static void join(void)
{
    struct hvd_request *request = NULL;
    struct hvd_error err = {0};

    finish(hvd_join_start(&request, &err), &request, &err, "join");
}

static void do_step(void)
{
    static void (*const others[])(void) = {
        reduce_numbers, broadcast, gather, scatter_sums, exchange, pass_messages, meet};
    const int64_t kinds = sizeof(others) / sizeof(others[0]);

    reduce_gradients();
    if (soak.step % 4 == 3) {
        others[soak.step / 4 % kinds]();
    }
    if (soak.step % RARELY == RARELY - 1 && soak.size > 1) {
        use_set();
    }
    if (soak.step % JOIN_PERIOD == JOIN_PERIOD - 2) {
        join();
    }
    hvd_count_step();
}

/* --- resources --- */

enum {
    MEMORY_KIB,
    DESCRIPTORS,
    THREADS,
    RESOURCES
};

static int64_t count_entries(const char *path)
{
    DIR *directory = opendir(path);
    int64_t count = 0;

    while (directory != NULL && readdir(directory) != NULL) {
        count++;
    }
    if (directory != NULL) {
        closedir(directory);
    }
    return count;
}

static int64_t resident_kib(void)
{
    FILE *file = fopen("/proc/self/status", "re");
    char line[256];
    int64_t kib = 0;

    while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
        if (strncmp(line, "VmRSS:", 6) == 0) {
            kib = strtoll(line + 6, NULL, 10);
        }
    }
    if (file != NULL) {
        fclose(file);
    }
    return kib;
}

static void look(int64_t found[RESOURCES])
{
    malloc_trim(0);
    found[MEMORY_KIB] = resident_kib();
    found[DESCRIPTORS] = count_entries("/proc/self/fd");
    found[THREADS] = count_entries("/proc/self/task");
}

/* Sets `more` to how much each resource has grown, on the rank where it has most. */
static void compare(const int64_t before[RESOURCES], int64_t more[RESOURCES])
{
    const int64_t count = RESOURCES;
    struct hvd_tensor tensor = tensor_of("resources", &count);
    struct hvd_request *request = NULL;
    struct hvd_error err = {0};

    look(more);
    for (int i = 0; i < RESOURCES; i++) {
        more[i] -= before[i];
    }
    tensor.input = more;
    tensor.output = more;
    tensor.dtype = HVD_INT64;
    finish(hvd_allreduce_start(&tensor, 1, HVD_MAX, 1, 1, 0, &request, &err), &request,
           &err, "comparison");
}

static void print_progress(int64_t steps, int64_t begin_ns, const int64_t more[RESOURCES])
{
    const double seconds = (double)(hvd_clock_ns() - begin_ns) / 1e9;

    if (soak.rank == 0) {
        printf("soak: %lld of %lld steps, %.0f s, %.0f steps/s, growth: %lld KiB, %lld "
               "descriptors, %lld threads\n",
               (long long)soak.step, (long long)steps, seconds,
               (double)soak.step / (seconds > 0 ? seconds : 1),
               (long long)more[MEMORY_KIB], (long long)more[DESCRIPTORS],
               (long long)more[THREADS]);
        fflush(stdout);
    }
}

/* Returns the exit status. */
static int run_steps(int64_t steps)
{
    const int64_t warm = steps / WARM_PART, part = steps / 20 > 0 ? steps / 20 : 1;
    const int64_t begin_ns = hvd_clock_ns();
    int64_t before[RESOURCES] = {0}, more[RESOURCES] = {0};
    int good;

    look(before);
    while (soak.step < steps) {
        do_step();
        soak.step++;
        if (soak.step == warm) {
            look(before);
        }
        if (soak.step % part == 0) {
            compare(before, more);
            print_progress(steps, begin_ns, more);
        }
    }
    compare(before, more);
    good = steps < FEW_STEPS || (more[MEMORY_KIB] <= SLACK_KIB &&
                                 more[DESCRIPTORS] <= 0 && more[THREADS] <= 0);
    if (soak.rank == 0) {
        printf("soak: %lld steps with %lld calls of each rank, all results right; growth "
               "since step %lld: %lld KiB, %lld descriptors, %lld threads: %s\n",
               (long long)steps, (long long)soak.calls, (long long)warm,
               (long long)more[MEMORY_KIB], (long long)more[DESCRIPTORS],
               (long long)more[THREADS], good ? "GOOD" : "BAD");
    }
    return good ? 0 : 1;
}

int main(int argc, char **argv)
{
    const int64_t steps = argc == 2 ? strtoll(argv[1], NULL, 10) : 0;
    struct hvd_error err = {0};
    int status;

    if (steps <= 0) {
        fprintf(stderr, "usage: soak_ranks STEPS, under hvdrun or srun --hvd\n");
        return 2;
    }
    /* hvdrun ends the ranks with SIGTERM; this rank must print its error first */
    signal(SIGTERM, SIG_IGN);
    if (hvd_init(&err) != 0) {
        fprintf(stderr, "soak: hvd_init: %s\n", err.text);
        return 3;
    }
    soak.rank = hvd_rank();
    soak.size = hvd_size();
    status = run_steps(steps);
    hvd_shutdown();
    return status;
}
