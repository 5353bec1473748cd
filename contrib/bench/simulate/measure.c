/* SPDX-License-Identifier: Apache-2.0 */
/* What calibrate.py compares with predictions, and what it predicts from.
 *
 *   measure probe PROCESSES BYTES    without a job: rates and times of this machine, as options
 *                                    of hvd-simulate; so many processes copy at the same time
 *   measure KIND GB BYTES...         as a rank of a job: allreduce or allgather, run inline, so
 *                                    many GB of each size; rank 0 prints bytes and microseconds
 *
 * Times are what the fastest tenth of all calls stays below: other work on the machine
 * makes calls slower, never faster. */
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "collectives/api/direct.h"
#include "collectives/reduce/reduce.h"

enum {
    SLOT_BYTES = 256 << 10,
    SLOTS = 4,
    MOST_SAMPLES = 100000,
    ROWS = 100,
    MOST_PROCESSES = 64,
};

static const int64_t least_bytes = 20000; /* what a call costs at least, as bytes */

static double samples[MOST_SAMPLES];
static int sample_count;

static double now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static int compare(const void *a, const void *b)
{
    const double *one = a, *other = b;

    return (*one > *other) - (*one < *other);
}

static double fast_tenth(void)
{
    qsort(samples, (size_t)sample_count, sizeof(samples[0]), compare);
    return samples[sample_count / 10];
}

static _Noreturn void fail(const char *text)
{
    fprintf(stderr, "measure: %s\n", text);
    exit(1);
}

/* --- probes --- */

/* Shared by the processes of a probe. */
struct board {
    _Atomic int ready;
    _Atomic int done;
    _Alignas(128) _Atomic int ping;
    _Alignas(128) _Atomic int pong;
    double copy[MOST_PROCESSES];
    double write[MOST_PROCESSES];
    double add[MOST_PROCESSES];
};

static struct board *board;
static float *source, *target, *slots;

/* An array through slots, as PUT does it; seconds. */
static double copy_once(size_t bytes)
{
    double start = now();

    for (size_t at = 0; at < bytes; at += SLOT_BYTES) {
        size_t left = bytes - at;

        memcpy((char *)slots + at / SLOT_BYTES % SLOTS * SLOT_BYTES, (char *)source + at,
               left < SLOT_BYTES ? left : SLOT_BYTES);
    }
    return now() - start;
}

/* An array into another, as GET and REDUCE_OUT write the output. */
static double write_once(size_t bytes)
{
    double start = now();

    memcpy(target, source, bytes);
    return now() - start;
}

/* Two slots summed up into a third, as often as fits an array. */
static double add_once(size_t bytes)
{
    struct hvd_reduction reduction = {
        .dtype = HVD_FLOAT32, .op = HVD_SUM, .postscale = 1};
    double start = now();

    for (size_t at = 0; at < bytes; at += SLOT_BYTES) {
        size_t left = bytes - at;
        const void *sources[2] = {slots, (char *)slots + SLOT_BYTES};

        hvd_reduce(&reduction, sources, 2,
                   (left < SLOT_BYTES ? left : SLOT_BYTES) / sizeof(float),
                   (char *)slots + 2 * SLOT_BYTES);
    }
    return now() - start;
}

static double sample(double (*once)(size_t bytes), size_t bytes)
{
    double end = now() + 0.5;

    sample_count = 0;
    once(bytes);
    while (sample_count < MOST_SAMPLES && now() < end) {
        samples[sample_count++] = once(bytes);
    }
    return fast_tenth();
}

static void probe_rates(int process, int processes, size_t bytes)
{
    source = malloc(bytes);
    target = malloc(bytes);
    slots = malloc((size_t)SLOTS * SLOT_BYTES);
    if (source == NULL || target == NULL || slots == NULL) {
        fail("no memory");
    }
    memset(source, 0, bytes);
    memset(target, 0, bytes);
    memset(slots, 0, (size_t)SLOTS * SLOT_BYTES);
    atomic_fetch_add(&board->ready, 1);
    while (atomic_load(&board->ready) < processes) {
        sched_yield();
    }
    board->copy[process] = sample(copy_once, bytes);
    board->write[process] = sample(write_once, bytes);
    board->add[process] = sample(add_once, bytes);
}

/* Half a round trip between two processes; each yields as the engine does when cores are few. */
static double probe_sync(void)
{
    pid_t child = fork();

    if (child == 0) {
        for (int i = 1; i <= 20000; i++) {
            while (atomic_load_explicit(&board->ping, memory_order_acquire) < i) {
                sched_yield();
            }
            atomic_store_explicit(&board->pong, i, memory_order_release);
        }
        _exit(0);
    }
    sample_count = 0;
    for (int i = 1; i <= 20000; i++) {
        double start = now();

        atomic_store_explicit(&board->ping, i, memory_order_release);
        while (atomic_load_explicit(&board->pong, memory_order_acquire) < i) {
            sched_yield();
        }
        samples[sample_count++] = (now() - start) / 2;
    }
    waitpid(child, NULL, 0);
    return fast_tenth();
}

static int probe(int processes, size_t bytes)
{
    double copy = 0, write = 0, add = 0;

    board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                 -1, 0);
    if (board == MAP_FAILED || processes < 1 || processes > MOST_PROCESSES ||
        bytes == 0) {
        fail("probe: 1 to 64 processes and some bytes");
    }
    for (int i = 1; i < processes; i++) {
        if (fork() == 0) {
            probe_rates(i, processes, bytes);
            _exit(0);
        }
    }
    probe_rates(0, processes, bytes);
    while (wait(NULL) > 0) {
    }
    for (int i = 0; i < processes; i++) {
        copy += board->copy[i] / processes;
        write += board->write[i] / processes;
        add += board->add[i] / processes;
    }
    printf("pcie=%.3fGB,out=%.3fGB,sum=%.3fGB,sync=%.0fns\n", (double)bytes / copy / 1e9,
           (double)bytes / write / 1e9, 2 * (double)bytes / add / 1e9,
           probe_sync() * 1e9);
    return 0;
}

/* --- jobs --- */

static void run(struct hvd_direct *direct)
{
    struct hvd_error err = {0};

    if (hvd_direct_run(direct, &err) != 0) {
        fail(err.text);
    }
}

static struct hvd_direct *plan(struct hvd_start *start, float *data, int64_t count)
{
    struct hvd_tensor tensor = {.name = "measure",
                                .input = data,
                                .output = data + count,
                                .shape = &count,
                                .ndim = 1,
                                .dtype = HVD_FLOAT32,
                                .device = HVD_DEVICE_CPU};
    struct hvd_direct *direct;
    struct hvd_error err = {0};

    if (hvd_direct_plan(start, &tensor, 1, &direct, &err) != 0) {
        fail(err.text);
    }
    return direct;
}

/* Of one call, in rows of calls: some calls find the work done by others. */
static double time_calls(struct hvd_direct *direct, int rows, int calls)
{
    for (int i = 0; i < 5; i++) {
        run(direct);
    }
    for (sample_count = 0; sample_count < rows; sample_count++) {
        double start = now();

        for (int i = 0; i < calls; i++) {
            run(direct);
        }
        samples[sample_count] = (now() - start) / calls;
    }
    return fast_tenth();
}

/* All ranks make the same number of calls, fewer of large ones. */
static void measure(bool is_allgather, double traffic, int64_t bytes)
{
    double calls = traffic / (double)(least_bytes + bytes) / ROWS;
    int64_t count = bytes / (int64_t)sizeof(float);
    float *data = calloc((size_t)count * 2, sizeof(float));
    struct hvd_start start = {.kind =
                                  is_allgather ? HVD_KIND_ALLGATHER : HVD_KIND_ALLREDUCE,
                              .word = "Measure",
                              .op = HVD_SUM,
                              .prescale = 1,
                              .postscale = 1};
    struct hvd_direct *direct = plan(&start, data, count);
    double took;

    memset(data, 0, (size_t)count * 2 * sizeof(float));
    took = time_calls(direct, ROWS, calls < 1 ? 1 : (int)calls);
    if (hvd_rank() == 0) {
        printf("%lld %.3f\n", (long long)bytes, took * 1e6);
        fflush(stdout);
    }
    hvd_direct_destroy(direct);
    free(data);
}

int main(int argc, char **argv)
{
    struct hvd_error err = {0};

    if (argc == 4 && strcmp(argv[1], "probe") == 0) {
        return probe(atoi(argv[2]), (size_t)atoll(argv[3]));
    }
    if (argc < 4) {
        fail("see the comment in measure.c");
    }
    if (hvd_init(&err) != 0 || hvd_direct_open(&err) != 0) {
        fail(err.text);
    }
    for (int i = 3; i < argc; i++) {
        measure(strcmp(argv[1], "allgather") == 0, atof(argv[2]) * 1e9, atoll(argv[i]));
    }
    hvd_direct_close();
    hvd_shutdown();
    return 0;
}
