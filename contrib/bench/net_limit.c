/* SPDX-License-Identifier: Apache-2.0 */
/* How near hvd comes to what the network gives.
 *
 *   two_nodes.sh HVDRUN 1,1 net_limit [TURNS [FRAGMENT [SIZE...]]]
 *
 * An allreduce of two ranks on two nodes (float32, Sum), in the same processes and the same run,
 * in turns: with nothing but UCX active messages of FRAGMENT bytes (default 64000); with hvd's data
 * path alone, the schedule run by the caller ("team"); and through hvd's public interface, from
 * submission to completion ("hvd"). Printed: medians over the turns (default 15), and the limit's
 * share of the time of the other two: 1 is perfect. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collectives/api/direct.h"
#include "contrib/bench/batch.h"
#include "contrib/bench/median.h"
#include "contrib/bench/net_limit_ucx.h"

static const double turn_seconds = 0.04;

enum {
    MOST_TURNS = 101,
    MOST_CALLS = 5000,
    WARM_UP_CALLS = 60, /* hvd foresees what repeats */
    MOST_ADDRESS = 4096
};

static const int64_t sizes[] = {8,       1 << 10, 16 << 10, 64 << 10, 256 << 10,
                                1 << 20, 4 << 20, 16 << 20, 64 << 20};

struct address {
    int64_t bytes;
    char data[MOST_ADDRESS];
};

static void die(const char *why)
{
    fprintf(stderr, "rank %d: %s\n", hvd_rank(), why);
    exit(1);
}

static void finish(int started, struct hvd_request **request, struct hvd_error *err)
{
    if (started != 0 || hvd_wait(*request, err) != 0) {
        die(err->text);
    }
    hvd_request_free(*request);
}

static void connect_limit(size_t fragment)
{
    static struct address addresses[2];
    const void *own;
    size_t bytes;

    limit_open(&own, &bytes);
    if (bytes > MOST_ADDRESS) {
        die("a longer address than expected");
    }
    addresses[hvd_rank()].bytes = (int64_t)bytes;
    memcpy(addresses[hvd_rank()].data, own, bytes);
    for (int root = 0; root < 2; root++) {
        int64_t count = sizeof(struct address);
        struct hvd_tensor tensor = {.name = "address",
                                    .input = &addresses[root],
                                    .output = &addresses[root],
                                    .shape = &count,
                                    .ndim = 1,
                                    .dtype = HVD_UINT8,
                                    .device = HVD_DEVICE_CPU};
        struct hvd_request *request = NULL;
        struct hvd_error err = {0};

        finish(hvd_broadcast_start(&tensor, root, HVD_SET_GLOBAL, &request, &err),
               &request, &err);
    }
    limit_connect(addresses[1 - hvd_rank()].data, fragment);
}

typedef void runner(const float *in, float *out, size_t count);

static void run_hvd(const float *in, float *out, size_t count)
{
    int64_t elements = (int64_t)count;
    char name[32];
    struct hvd_tensor tensor = {.name = name,
                                .input = in,
                                .output = out,
                                .shape = &elements,
                                .ndim = 1,
                                .dtype = HVD_FLOAT32,
                                .device = HVD_DEVICE_CPU};
    struct hvd_request *request = NULL;
    struct hvd_error err = {0};

    snprintf(name, sizeof(name), "bench.%zu", count);
    finish(hvd_allreduce_start(&tensor, 1, HVD_SUM, 1, 1, HVD_SET_GLOBAL, &request, &err),
           &request, &err);
}

static struct hvd_direct *direct;

/* The arrays are those of the plan. */
static void run_team(const float *in, float *out, size_t count)
{
    struct hvd_error err = {0};

    (void)in;
    (void)out;
    (void)count;
    if (hvd_direct_run(direct, &err) != 0) {
        die(err.text);
    }
}

static void plan_team(const float *in, float *out, size_t count)
{
    int64_t elements = (int64_t)count;
    struct hvd_tensor tensor = {.name = "bench",
                                .input = in,
                                .output = out,
                                .shape = &elements,
                                .ndim = 1,
                                .dtype = HVD_FLOAT32,
                                .device = HVD_DEVICE_CPU};
    struct hvd_start start = {.kind = HVD_KIND_ALLREDUCE,
                              .word = "Allreduce",
                              .op = HVD_SUM,
                              .prescale = 1,
                              .postscale = 1};
    struct hvd_error err = {0};

    if (hvd_direct_plan(&start, &tensor, 1, &direct, &err) != 0) {
        die(err.text);
    }
}

/* Seconds per call, of both ranks: a call ends when the other has come as far. */
static double time_calls(runner *run, const float *in, float *out, size_t count,
                         int calls)
{
    float one = 1, two;
    double start;

    limit_allreduce(&one, &two, 1);
    start = seconds_now();
    for (int i = 0; i < calls; i++) {
        run(in, out, count);
    }
    limit_allreduce(&one, &two, 1);
    return (seconds_now() - start) / calls;
}

static void check(const char *who, float *out, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (out[i] != (float)(i % 1000) * 2 + 3) {
            fprintf(stderr, "%s: element %zu is %g\n", who, i, (double)out[i]);
            exit(1);
        }
    }
    memset(out, 0, count * sizeof(out[0]));
}

enum {
    LIMIT,
    TEAM,
    HVD,
    WAYS
};

struct way {
    const char *name;
    runner *run;
    int calls; /* per turn */
    double seconds[MOST_TURNS];
    double ratios[MOST_TURNS]; /* the limit's time in the same turn / seconds */
};

static double time_way(struct way *way, const float *in, float *out, size_t count)
{
    double seconds;

    if (way->run != run_team) {
        return time_calls(way->run, in, out, count, way->calls);
    }
    if (hvd_direct_open(NULL) != 0) {
        die("cannot take the job over");
    }
    seconds = time_calls(run_team, in, out, count, way->calls);
    hvd_direct_close();
    return seconds;
}

/* Both ranks must make the same number of calls: what they measured is added up. */
static void prepare(struct way *way, const float *in, float *out, size_t count)
{
    float own, both;
    double calls;

    way->calls = way->run == run_hvd && count < 1 << 18 ? WARM_UP_CALLS : 3;
    own = (float)time_way(way, in, out, count);
    check(way->name, out, count);
    limit_allreduce(&own, &both, 1);
    calls = turn_seconds / (both / 2);
    way->calls = calls < 1 ? 1 : calls > MOST_CALLS ? MOST_CALLS : (int)calls;
}

static void measure_arrays(const float *in, float *out, size_t count, int turns)
{
    static struct way ways[WAYS] = {
        {.name = "limit", .run = limit_allreduce},
        {.name = "team", .run = run_team},
        {.name = "hvd", .run = run_hvd},
    };

    if (hvd_direct_open(NULL) != 0) {
        die("cannot take the job over");
    }
    plan_team(in, out, count);
    hvd_direct_close();
    for (int way = 0; way < WAYS; way++) {
        prepare(&ways[way], in, out, count);
    }
    for (int i = 0; i < turns; i++) {
        for (int way = 0; way < WAYS; way++) {
            ways[way].seconds[i] = time_way(&ways[way], in, out, count);
            ways[way].ratios[i] = ways[LIMIT].seconds[i] / ways[way].seconds[i];
        }
    }
    if (hvd_rank() == 0) {
        printf("%10zu", count * sizeof(float));
        for (int way = 0; way < WAYS; way++) {
            printf(" %10.1f", median(ways[way].seconds, turns) * 1e6);
        }
        printf(" %8.2f %8.2f\n", median(ways[TEAM].ratios, turns),
               median(ways[HVD].ratios, turns));
        fflush(stdout);
    }
    hvd_direct_destroy(direct);
}

static void measure(int64_t bytes, int turns)
{
    size_t count = (size_t)bytes / sizeof(float);
    float *in = aligned_alloc(4096, ((size_t)bytes + 4095) / 4096 * 4096);
    float *out = aligned_alloc(4096, ((size_t)bytes + 4095) / 4096 * 4096);

    if (in == NULL || out == NULL) {
        die("out of memory");
    }
    for (size_t i = 0; i < count; i++) {
        in[i] = (float)(i % 1000) + (float)(hvd_rank() + 1);
    }
    memset(out, 0, (size_t)bytes);
    measure_arrays(in, out, count, turns);
    free(in);
    free(out);
}

int main(int argc, char **argv)
{
    int turns = argc > 1 ? atoi(argv[1]) : 15;
    struct hvd_error err = {0};

    if (hvd_init(&err) != 0) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    if (hvd_size() != 2) {
        die("needs two ranks");
    }
    connect_limit(argc > 2 ? (size_t)atol(argv[2]) : 64000);
    turns = turns < 1 ? 1 : turns > MOST_TURNS ? MOST_TURNS : turns;
    if (hvd_rank() == 0) {
        printf("%10s %10s %10s %10s %8s %8s\n", "bytes", "limit us", "team us", "hvd us",
               "of team", "of hvd");
    }
    if (argc > 3) {
        for (int i = 3; i < argc; i++) {
            measure(atoll(argv[i]), turns);
        }
    } else {
        for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
            measure(sizes[i], turns);
        }
    }
    hvd_shutdown();
    return 0;
}
