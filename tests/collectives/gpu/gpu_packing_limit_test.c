/* SPDX-License-Identifier: Apache-2.0 */
/* Tests the size below which tensors are packed, as computed from measured times. */
#include "collectives/gpu/gpu_packing_limit.h"
#include "tests/tap.h"

enum {
    RANKS = 3,
};

static struct hvd_gpu_packing_times times(int64_t moves_ns, int64_t packed_ns,
                                          int64_t apart_ns)
{
    return (struct hvd_gpu_packing_times){.is_known = 1,
                                          .moves_ns = moves_ns,
                                          .packed_ns = packed_ns,
                                          .apart_ns = apart_ns};
}

static int64_t limit_of(struct hvd_gpu_packing_times one)
{
    struct hvd_gpu_packing_times agreed;

    return hvd_gpu_packing_limit(&one, 1, &agreed);
}

static bool is_near(int64_t bytes, int64_t wanted)
{
    return bytes >= wanted - 1 && bytes <= wanted + 1;
}

static void test_limit(void)
{
    /* Moving 8 tensors of 1 MiB takes 8000 ns. 7 additional calls of NCCL take 7000 ns,
     * 1000 ns each. */
    tap_ok(is_near(limit_of(times(8000, 50000, 57000)), 1 << 20),
           "a call costs as much as moving 1 MiB: the limit is 1 MiB");
    tap_ok(is_near(limit_of(times(8000, 50000, 78000)), 4 << 20),
           "a call costs as much as moving 4 MiB: the limit is 4 MiB");
    tap_ok(is_near(limit_of(times(32000, 50000, 57000)), 256 << 10),
           "a call costs as much as moving 256 KiB: the limit is 256 KiB");
    tap_ok(limit_of(times(8000, 50000, 50000)) == HVD_GPU_PACKING_LEAST,
           "calls cost nothing: the smallest limit");
    tap_ok(limit_of(times(8000, 50000, 10)) == HVD_GPU_PACKING_LEAST,
           "the packed allreduce takes longer than the others: the smallest limit");
    tap_ok(limit_of(times(1, 50000, 57000)) == HVD_GPU_PACKING_MOST,
           "moving costs almost nothing: the largest limit");
    tap_ok(limit_of(times(INT64_MAX, 0, INT64_MAX)) > HVD_GPU_PACKING_LEAST &&
               limit_of(times(1, 0, INT64_MAX)) == HVD_GPU_PACKING_MOST &&
               limit_of(times(INT64_MAX, INT64_MAX, 0)) == HVD_GPU_PACKING_LEAST,
           "extreme times: the limit stays within bounds");
}

static void test_unknown(void)
{
    struct hvd_gpu_packing_times unknown = times(8000, 50000, 78000);

    unknown.is_known = 0;
    tap_ok(limit_of(unknown) == HVD_GPU_PACKING_USUAL,
           "nothing was measured: the usual limit");
    tap_ok(limit_of(times(0, 50000, 78000)) == HVD_GPU_PACKING_USUAL &&
               limit_of(times(0, 0, 0)) == HVD_GPU_PACKING_USUAL,
           "moving takes no time: no valid measurement, the usual limit");
    tap_ok(limit_of(times(-8000, 50000, 78000)) == HVD_GPU_PACKING_USUAL &&
               limit_of(times(8000, -1, 78000)) == HVD_GPU_PACKING_USUAL &&
               limit_of(times(8000, 50000, -78000)) == HVD_GPU_PACKING_USUAL &&
               limit_of(times(INT64_MIN, INT64_MIN, INT64_MIN)) == HVD_GPU_PACKING_USUAL,
           "negative times: no valid measurement, the usual limit");
}

static void test_ranks(void)
{
    /* The second rank is slowest in moving tensors, so the others wait for it in the
     * packed allreduce. */
    struct hvd_gpu_packing_times told[RANKS] = {
        times(7000, 90000, 61000), times(8000, 50000, 58000), times(500, 70000, 57000)};
    struct hvd_gpu_packing_times agreed;
    int64_t limit = hvd_gpu_packing_limit(told, RANKS, &agreed);

    tap_ok(is_near(limit, 1 << 20) && agreed.moves_ns == 8000 &&
               agreed.packed_ns == 50000 && agreed.apart_ns == 57000,
           "the slowest rank counts for moving, the fastest for an allreduce");
    told[2].is_known = 0;
    limit = hvd_gpu_packing_limit(told, RANKS, &agreed);
    tap_ok(limit == HVD_GPU_PACKING_USUAL && !agreed.is_known,
           "a rank has measured nothing: the usual limit");
}

/* --- spans --- */

static struct hvd_gpu_span spans[HVD_GPU_MOST_SPANS];
static int count;
static int64_t now_ns;

static void add(enum hvd_gpu_span_kind kind, int64_t ns)
{
    spans[count++] =
        (struct hvd_gpu_span){.kind = kind, .begin_ns = now_ns, .end_ns = now_ns + ns};
    now_ns += ns;
}

static void add_round(int64_t in, int64_t packed, int64_t out, int64_t apart)
{
    add(HVD_GPU_MOVES, in);
    add(HVD_GPU_COLLECTS, packed);
    add(HVD_GPU_MOVES, out);
    add(HVD_GPU_COLLECTS, apart);
}

static void test_spans(void)
{
    struct hvd_gpu_packing_times read;

    add_round(30, 900, 40, 3000);
    add_round(20, 300, 25, 500);
    add_round(21, 200, 24, 600);
    read = hvd_gpu_packing_read(spans, count);
    tap_ok(read.is_known && read.moves_ns == 20 + 24 && read.packed_ns == 200 &&
               read.apart_ns == 500,
           "the fastest round counts for each part");

    count = 0;
    add(HVD_GPU_CONNECTS, 1000000);
    add_round(30, 900, 40, 3000);
    add_round(20, 300, 25, 500);
    add(HVD_GPU_MOVES, 10);
    add(HVD_GPU_COLLECTS, 200);
    add(HVD_GPU_MOVES, 15);
    read = hvd_gpu_packing_read(spans, count);
    tap_ok(read.is_known && read.moves_ns == 25 && read.packed_ns == 200 &&
               read.apart_ns == 500,
           "spans for connecting are skipped, and the last span may be missing");

    count = 0;
    add(HVD_GPU_AWAITS, 1000000);
    add_round(30, 900, 40, 3000);
    add_round(20, 300, 25, 500);
    add(HVD_GPU_MOVES, 10);
    add(HVD_GPU_COLLECTS, 200);
    add(HVD_GPU_MOVES, 15 + 600);
    read = hvd_gpu_packing_read(spans, count);
    tap_ok(read.is_known && read.moves_ns == 10 + 25 && read.packed_ns == 200 &&
               read.apart_ns == 500,
           "spans for waiting are skipped, and the last span may cover two parts");

    tap_ok(!hvd_gpu_packing_read(spans, 0).is_known &&
               !hvd_gpu_packing_read(spans, 4).is_known,
           "less than a round is not a measurement");
    count = 0;
    add_round(1, 2, 3, 4);
    spans[2].kind = HVD_GPU_COLLECTS;
    tap_ok(!hvd_gpu_packing_read(spans, count).is_known,
           "spans of other work are not a measurement");
}

int main(void)
{
    test_limit();
    test_unknown();
    test_ranks();
    test_spans();
    return tap_done();
}
