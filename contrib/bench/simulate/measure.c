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
    PROBES = 30,
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

/* What a chunk of an array goes through. */
enum probe_part {
    PACK, /* the array -> my slot */
    ADD, /* the array + the neighbour's slot -> another array */
    UNPACK, /* the neighbour's slot -> another array */
    PARTS
};

/* Shared by the processes of a probe. */
struct board {
    _Atomic int arrived; /* at a barrier, of all so far */
    _Alignas(128) _Atomic int ping;
    _Alignas(128) _Atomic int pong;
    double took[MOST_PROCESSES][PARTS]; /* seconds of the whole array */
    _Alignas(4096) char slots[MOST_PROCESSES][SLOTS][SLOT_BYTES];
};

static struct board *board;

struct probe {
    int process;
    int processes;
    int barriers;
    size_t bytes;
    char *source, *target;
};

static void meet(struct probe *probe)
{
    int all = ++probe->barriers * probe->processes;

    atomic_fetch_add(&board->arrived, 1);
    while (atomic_load(&board->arrived) < all) {
        sched_yield();
    }
}

static void do_part(const struct probe *probe, enum probe_part part, size_t at,
                    size_t bytes)
{
    struct hvd_reduction reduction = {
        .dtype = HVD_FLOAT32, .op = HVD_SUM, .postscale = 1};
    size_t slot = at / SLOT_BYTES % SLOTS;
    int neighbour = (probe->process + 1) % probe->processes;
    const void *sources[2] = {probe->source + at, board->slots[neighbour][slot]};

    if (part == PACK) {
        memcpy(board->slots[probe->process][slot], probe->source + at, bytes);
    } else if (part == UNPACK && probe->processes > 1) {
        memcpy(probe->target + at, sources[1], bytes);
    } else { /* alone nothing is added, and nothing was packed */
        hvd_reduce(&reduction, sources, part == ADD ? 2 : 1, bytes / sizeof(float),
                   probe->target + at);
    }
}

/* All chunks of the array through two parts, which begin on all processes at the same time; a
 * process alone packs nothing. */
static void probe_once(struct probe *probe, enum probe_part second, double took[PARTS])
{
    took[PACK] = took[second] = 0;
    for (size_t at = 0; at < probe->bytes; at += SLOT_BYTES) {
        size_t left = probe->bytes - at;
        size_t bytes = left < SLOT_BYTES ? left : SLOT_BYTES;

        for (int i = probe->processes > 1 ? 0 : 1; i < 2; i++) {
            enum probe_part part = i == 0 ? PACK : second;
            double start;

            meet(probe);
            start = now();
            do_part(probe, part, at, bytes);
            took[part] += now() - start;
        }
    }
}

static void probe_rates(struct probe *probe)
{
    static double all[PARTS][PROBES];

    probe->source = malloc(probe->bytes);
    probe->target = malloc(probe->bytes);
    if (probe->source == NULL || probe->target == NULL) {
        fail("no memory");
    }
    memset(probe->source, 0, probe->bytes);
    memset(probe->target, 0, probe->bytes);
    for (int i = 0; i < PROBES; i++) {
        double took[PARTS];

        probe_once(probe, UNPACK, took);
        probe_once(probe, ADD, took);
        took[PACK] = probe->processes > 1 ? took[PACK] : took[UNPACK];
        for (int part = 0; part < PARTS; part++) {
            all[part][i] = took[part];
        }
    }
    for (int part = 0; part < PARTS; part++) {
        sample_count = PROBES;
        memcpy(samples, all[part], sizeof(all[part]));
        board->took[probe->process][part] = fast_tenth();
    }
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

/* Mean rate of all processes. */
static double rate_of(enum probe_part part, const struct probe *probe)
{
    double took = 0;

    for (int i = 0; i < probe->processes; i++) {
        took += board->took[i][part] / probe->processes;
    }
    return (double)probe->bytes / took / 1e9;
}

static int run_probe(int processes, size_t bytes)
{
    struct probe probe = {.processes = processes, .bytes = bytes};
    double in, out, add;

    board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                 -1, 0);
    if (board == MAP_FAILED || processes < 1 || processes > MOST_PROCESSES ||
        bytes == 0) {
        fail("probe: 1 to 64 processes and some bytes");
    }
    for (int i = 1; i < processes; i++) {
        if (fork() == 0) {
            probe.process = i;
            probe_rates(&probe);
            _exit(0);
        }
    }
    probe_rates(&probe);
    while (wait(NULL) > 0) {
    }
    in = rate_of(PACK, &probe);
    out = rate_of(UNPACK, &probe);
    add =
        rate_of(ADD, &probe); /* writing included: what is left are its sources but one */
    printf("pcie=%.3fGB,out=%.3fGB,sum=%.3fGB,sync=%.0fns\n", in, out,
           add < 0.8 * out ? 1 / (1 / add - 1 / out) : 4 * add, probe_sync() * 1e9);
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
        return run_probe(atoi(argv[2]), (size_t)atoll(argv[3]));
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
