/* SPDX-License-Identifier: Apache-2.0 */
/* The formats of the OSU micro-benchmarks 7 and of nccl-tests 2.17. */
#include "contrib/bench/hvd_bench/formats.h"

#include <inttypes.h>

/* Whether OSU's sizes and the counts of nccl-tests are those of one rank's part. */
static bool is_counted_by_rank(enum bench_collective collective)
{
    return collective == BENCH_ALLGATHER || collective == BENCH_ALLTOALL ||
           collective == BENCH_GATHER || collective == BENCH_SCATTER;
}

const char *bench_format_lacks(enum bench_format format, enum bench_collective collective)
{
    if (format == BENCH_OSU && collective == BENCH_SENDRECV) {
        return "the OSU micro-benchmarks measure the bandwidth of such messages instead";
    }
    if (format == BENCH_NCCL_TESTS &&
        (collective == BENCH_PINGPONG || collective == BENCH_BARRIER)) {
        return "nccl-tests do not measure it";
    }
    return NULL;
}

/* --- OSU --- */

static const char *osu_name(enum bench_collective collective)
{
    static const char *const names[BENCH_COLLECTIVES] = {
        [BENCH_ALLREDUCE] = "osu_allreduce",
        [BENCH_ALLGATHER] = "osu_allgather",
        [BENCH_BROADCAST] = "osu_bcast",
        [BENCH_ALLTOALL] = "osu_alltoall",
        [BENCH_REDUCESCATTER] = "osu_reduce_scatter",
        [BENCH_REDUCE] = "osu_reduce",
        [BENCH_GATHER] = "osu_gather",
        [BENCH_SCATTER] = "osu_scatter",
        [BENCH_PINGPONG] = "osu_latency",
        [BENCH_BARRIER] = "osu_barrier",
    };

    return names[collective];
}

static void print_osu_columns(const struct bench_work *work, const char *title, FILE *out)
{
    bool is_barrier = work->collective == BENCH_BARRIER;

    fprintf(out,
            "\n# hvd-bench: %s, in the format of %s; Avg, Min, Max: of blocks of calls\n",
            title, osu_name(work->collective));
    fprintf(out, "# %s%16s%18s%18s%12s\n", is_barrier ? "" : "Size    ",
            "Avg Latency(us)", "Min Latency(us)", "Max Latency(us)", "Iterations");
}

static void print_osu_row(const struct bench_work *work, const struct bench_row *row,
                          FILE *out)
{
    bool is_split = is_counted_by_rank(work->collective);
    /* osu_latency halves the time of a round trip */
    double factor = work->collective == BENCH_PINGPONG ? 0.5e6 : 1e6;

    if (work->collective != BENCH_BARRIER) {
        fprintf(out, "%-10" PRId64, is_split ? work->bytes / work->size : work->bytes);
    }
    fprintf(out, "%16.2f%18.2f%18.2f%12d\n", row->seconds.median * factor,
            row->seconds.least * factor, row->seconds.most * factor, row->calls);
}

/* --- nccl-tests --- */

static const char *nccl_type(enum hvd_dtype dtype)
{
    switch (dtype) {
    case HVD_FLOAT16:
        return "half";
    case HVD_FLOAT32:
        return "float";
    case HVD_FLOAT64:
        return "double";
    default:
        return hvd_dtype_name(dtype);
    }
}

static const char *nccl_operation(const struct bench_work *work)
{
    static const char *const names[HVD_OP_COUNT] = {
        [HVD_SUM] = "sum", [HVD_AVERAGE] = "avg",  [HVD_MIN] = "min",
        [HVD_MAX] = "max", [HVD_PRODUCT] = "prod",
    };

    return bench_collective_reduces(work->collective) && names[work->op] != NULL
               ? names[work->op]
               : "none";
}

static int nccl_root(enum bench_collective collective)
{
    return collective == BENCH_BROADCAST || collective == BENCH_REDUCE ||
                   collective == BENCH_GATHER || collective == BENCH_SCATTER
               ? 0
               : -1;
}

static void print_nccl_columns(const char *title, FILE *out)
{
    fprintf(out, "\n# hvd-bench: %s, in the format of nccl-tests\n", title);
    fprintf(out, "#%66s%34s\n", "out-of-place", "in-place");
    fprintf(out, "#%12s%14s%10s%8s%8s%9s%8s%8s%7s%9s%8s%8s%7s\n", "size", "count", "type",
            "redop", "root", "time", "algbw", "busbw", "#wrong", "time", "algbw", "busbw",
            "#wrong");
    fprintf(out, "#%12s%14s%10s%8s%8s%9s%8s%8s%7s%9s%8s%8s\n", "(B)", "(elements)", "",
            "", "", "(us)", "(GB/s)", "(GB/s)", "", "(us)", "(GB/s)", "(GB/s)");
}

static void print_nccl_row(const struct bench_work *work, const struct bench_row *row,
                           FILE *out)
{
    double algbw = bench_algorithm_bandwidth(work->bytes, row->seconds.median);
    int64_t count = work->bytes / (int64_t)work->element;
    bool is_split =
        is_counted_by_rank(work->collective) || work->collective == BENCH_REDUCESCATTER;

    fprintf(out, "%13" PRId64 "%14" PRId64 "%10s%8s%8d%9.2f%8.2f%8.2f%7d%9s%8s%8s%7s\n",
            work->bytes, is_split ? count / work->size : count, nccl_type(work->dtype),
            nccl_operation(work), nccl_root(work->collective), row->seconds.median * 1e6,
            algbw, algbw * bench_bus_factor(work->collective, work->size), 0, "N/A",
            "N/A", "N/A", "N/A");
}

/* --- both --- */

void bench_format_end(enum bench_format format, double busbw, FILE *out)
{
    if (format == BENCH_NCCL_TESTS) {
        fprintf(out, "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : %g\n",
                busbw);
    }
}

void bench_format_columns(enum bench_format format, const struct bench_work *work,
                          const char *title, FILE *out)
{
    if (format == BENCH_OSU) {
        print_osu_columns(work, title, out);
    } else {
        print_nccl_columns(title, out);
    }
}

void bench_format_row(enum bench_format format, const struct bench_work *work,
                      const struct bench_row *row, FILE *out)
{
    if (format == BENCH_OSU) {
        print_osu_row(work, row, out);
    } else {
        print_nccl_row(work, row, out);
    }
}
