/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives that the calling thread runs itself (direct.h): each is planned once and
 * run several times. Runs as each rank of a job; rank 0 prints TAP. */
#include "contrib/bench/direct/direct.h"

#include <stdlib.h>
#include <string.h>

#include "tests/collectives/reduce/float_modes.h"
#include "tests/collectives/report.h"

enum {
    MOST = 300000,
    TURNS = 7
};

static float input[MOST], output[MOST];
static int rank, size;

static struct hvd_tensor tensor_of(const int64_t *count, bool in_place)
{
    return call_tensor("t", HVD_FLOAT32, count, 1, in_place ? output : input, output);
}

static void fill(float *data, int64_t count, int turn)
{
    for (int64_t i = 0; i < count; i++) {
        data[i] = (float)(i % 1000 + turn + rank);
    }
}

/* Returns element i of rank r's input in this turn. */
static float given(int64_t i, int turn, int r)
{
    return (float)(i % 1000 + turn + r);
}

static float sum(int64_t i, int turn)
{
    return (float)size * given(i, turn, 0) + (float)(size * (size - 1) / 2);
}

static struct hvd_direct *plan(struct hvd_start *start, const struct hvd_tensor *tensor)
{
    struct hvd_direct *direct = NULL;
    struct hvd_error err = {0};

    if (hvd_direct_plan(start, tensor, 1, &direct, &err) != 0) {
        fprintf(stderr, "# rank %d: %s\n", rank, err.text);
        exit(1);
    }
    return direct;
}

static void run(struct hvd_direct *direct)
{
    struct hvd_error err = {0};

    if (hvd_direct_run(direct, &err) != 0) {
        fprintf(stderr, "# rank %d: %s\n", rank, err.text);
        exit(1);
    }
}

static bool allreduces(int64_t count, bool in_place)
{
    struct hvd_start start = {.kind = HVD_KIND_ALLREDUCE,
                              .word = "Allreduce",
                              .op = HVD_SUM,
                              .prescale = 1,
                              .postscale = 1};
    struct hvd_tensor tensor = tensor_of(&count, in_place);
    struct hvd_direct *direct = plan(&start, &tensor);
    int64_t wrong = 0;

    for (int turn = 0; turn < TURNS; turn++) {
        fill(in_place ? output : input, count, turn);
        run(direct);
        for (int64_t i = 0; i < count; i++) {
            wrong += output[i] != sum(i, turn);
        }
    }
    hvd_direct_destroy(direct);
    return wrong == 0;
}

static bool scatters(int64_t count)
{
    struct hvd_start start = {.kind = HVD_KIND_REDUCESCATTER,
                              .word = "Reducescatter",
                              .op = HVD_SUM,
                              .prescale = 1,
                              .postscale = 1};
    int64_t all = count * size, wrong = 0;
    struct hvd_tensor tensor = tensor_of(&all, false);
    struct hvd_direct *direct = plan(&start, &tensor);

    for (int turn = 0; turn < TURNS; turn++) {
        fill(input, all, turn);
        run(direct);
        for (int64_t i = 0; i < count; i++) {
            wrong += output[i] != sum(rank * count + i, turn);
        }
    }
    hvd_direct_destroy(direct);
    return wrong == 0;
}

static bool gathers(int64_t count)
{
    struct hvd_start start = {
        .kind = HVD_KIND_ALLGATHER, .word = "Allgather", .op = HVD_SUM};
    struct hvd_tensor tensor = tensor_of(&count, false);
    struct hvd_direct *direct = plan(&start, &tensor);
    const float *result = hvd_direct_result(direct);
    int64_t wrong = 0;

    for (int turn = 0; turn < TURNS; turn++) {
        fill(input, count, turn);
        run(direct);
        for (int64_t i = 0; i < count * size; i++) {
            wrong += result[i] != given(i % count, turn, (int)(i / count));
        }
    }
    hvd_direct_destroy(direct);
    return wrong == 0;
}

/* Runs an alltoall in which each rank sends `count` rows to each rank. The values tell
 * which rank a row is from, and which one it is for. */
static bool exchanges(int64_t count)
{
    struct hvd_start start = {
        .kind = HVD_KIND_ALLTOALL, .word = "Alltoall", .op = HVD_SUM};
    int64_t all = count * size, wrong = 0;
    struct hvd_tensor tensor = tensor_of(&all, false);
    struct hvd_direct *direct = plan(&start, &tensor);

    for (int turn = 0; turn < TURNS; turn++) {
        const float *result;

        fill(input, all, turn);
        run(direct);
        result = hvd_direct_result(direct);
        for (int64_t i = 0; i < all; i++) {
            int64_t sent = rank * count + i % count;

            wrong += result[i] != given(sent, turn, (int)(i / count));
        }
    }
    hvd_direct_destroy(direct);
    return wrong == 0;
}

static bool broadcasts(int64_t count)
{
    int64_t wrong = 0;

    for (int root = 0; root < size; root++) {
        struct hvd_start start = {
            .kind = HVD_KIND_BROADCAST, .word = "Broadcast", .op = HVD_SUM, .root = root};
        struct hvd_tensor tensor = tensor_of(&count, false);
        struct hvd_direct *direct = plan(&start, &tensor);

        for (int turn = 0; turn < TURNS; turn++) {
            fill(input, count, turn);
            run(direct);
            for (int64_t i = 0; i < count; i++) {
                wrong += output[i] != given(i, turn, root);
            }
        }
        hvd_direct_destroy(direct);
    }
    return wrong == 0;
}

/* Runs an allreduce while each rank uses a different floating-point mode: the results
 * must not depend on it, and the calls must not change it. */
static bool ignores_modes(int64_t count)
{
    static float expected[MOST];
    struct hvd_start start = {.kind = HVD_KIND_ALLREDUCE,
                              .word = "Allreduce",
                              .op = HVD_AVERAGE,
                              .prescale = 1,
                              .postscale = 1.0 / 3};
    struct hvd_tensor tensor = tensor_of(&count, false);
    const size_t bytes = (size_t)count * sizeof(expected[0]);
    int modes = float_mode_count(), wrong = 0;

    for (int64_t i = 0; i < count; i++) {
        input[i] = i % 2 == 0 ? 0x1p-149f * (float)i : 1.0f / (float)(i + rank);
    }
    for (int turn = 0; turn < modes; turn++) {
        int mode = turn == 0 ? 0 : (turn + rank) % modes;
        struct hvd_direct *direct;

        float_mode_begin(mode);
        direct = plan(&start, &tensor);
        wrong += !float_mode_is_kept(mode);
        float_mode_begin(mode);
        run(direct);
        wrong += !float_mode_is_kept(mode);
        if (turn == 0) {
            memcpy(expected, output, bytes);
        }
        wrong += memcmp(output, expected, bytes) != 0;
        hvd_direct_destroy(direct);
    }
    return wrong == 0;
}

int main(void)
{
    static const int64_t counts[] = {1, 2, 13, 14, 15, 100, 1000, 5000, 33333, 70001};
    bool in_place = true, apart = true, scattered = true, gathered = true, cast = true,
         exchanged = true, alike;
    struct hvd_error err = {0};

    rank = report_init();
    size = hvd_size();
    if (hvd_direct_open(&err) != 0) {
        fprintf(stderr, "# rank %d: %s\n", rank, err.text);
        return 1;
    }
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        in_place &= allreduces(counts[i], true);
        apart &= allreduces(counts[i], false);
        cast &= broadcasts(counts[i]);
        if (counts[i] * size <= MOST) {
            scattered &= scatters(counts[i]);
            gathered &= gathers(counts[i]);
            exchanged &= exchanges(counts[i]);
        }
    }
    alike = ignores_modes(5000);
    hvd_direct_close();
    report(alike, "results do not depend on the floating-point mode, which is kept");
    report(in_place, "allreduce in place is right for all sizes in turn");
    report(apart, "allreduce from one array to another is right");
    report(cast, "broadcast from each rank is right");
    report(scattered, "reducescatter is right");
    report(gathered, "allgather is right");
    report(exchanged, "alltoall is right");
    hvd_shutdown();
    return report_done();
}
