/* SPDX-License-Identifier: Apache-2.0 */
/* Tests schedules whose sizes the simulator cannot run, and queries for which no schedule
 * is made. */
#include "collectives/schedule/schedule.h"

#include <stdlib.h>
#include <string.h>

#include "gpu_binding/base/error.h"
#include "tests/tap.h"

/* the geometry that libhvd uses */
static const struct hvd_geometry usual = {
    .slots = 4, .slot_bytes = 256 << 10, .recv_bytes = 1 << 20};

/* a number of elements of 4 bytes, or of bytes */
static const int64_t huge = INT64_C(5) << 31;

/* Makes a layout of `nodes` nodes of `each` ranks, in blocks. The caller ends it with
 * hvd_layout_finish. */
static struct hvd_layout make_layout(int nodes, int each)
{
    struct hvd_layout layout = {0};
    size_t size = (size_t)nodes * (size_t)each;
    char *names = calloc(size, 8);
    const char **hosts = calloc(size, sizeof(*hosts));

    for (size_t rank = 0; rank < size; rank++) {
        snprintf(names + 8 * rank, 8, "n%d", (int)rank / each);
        hosts[rank] = names + 8 * rank;
    }
    if (hvd_layout_init(&layout, hosts, (int)size, NULL) != 0) {
        abort();
    }
    free(names);
    free(hosts);
    return layout;
}

static struct hvd_schedule_query query_of(enum hvd_collective collective,
                                          const struct hvd_layout *layout)
{
    return (struct hvd_schedule_query){.collective = collective,
                                       .layout = layout,
                                       .geometry = usual,
                                       .element_bytes = 4,
                                       .partial_bytes = 4};
}

/* The steps of a whole schedule, counted. */
struct tally {
    int64_t taken; /* bytes of the input that are put, or reduced in place */
    /* bytes of the output; wrong unless every GET or COPY begins where the previous one
     * ended */
    int64_t got;
    uint64_t signals;
    int64_t messages;
    int most_steps;
};

static void count_output(int64_t begin, size_t bytes, struct tally *tally)
{
    tally->got = begin == tally->got ? tally->got + (int64_t)bytes : -1;
}

static void count_step(const struct hvd_step *step, struct tally *tally)
{
    switch (step->kind) {
    case HVD_STEP_PUT:
        tally->taken += (int64_t)step->bytes;
        break;
    case HVD_STEP_REDUCE_LOCAL:
        tally->taken += step->reduce_local.sources.is_put ? 0 : 4 * (int64_t)step->count;
        break;
    case HVD_STEP_GET:
        count_output(step->get.output, step->bytes, tally);
        break;
    case HVD_STEP_COPY:
        count_output(step->copy.output, step->bytes, tally);
        break;
    case HVD_STEP_SIGNAL:
        tally->signals++;
        break;
    case HVD_STEP_SEND:
    case HVD_STEP_RECV:
        tally->messages++;
        break;
    default:
        break;
    }
}

static struct tally count_steps(struct hvd_schedule *schedule)
{
    struct tally tally = {0};

    for (int64_t tick = 0; tick < hvd_schedule_facts(schedule)->ticks; tick++) {
        const struct hvd_step *steps;
        int count = hvd_schedule_tick(schedule, tick, &steps);

        tally.most_steps = count > tally.most_steps ? count : tally.most_steps;
        for (int i = 0; i < count; i++) {
            count_step(&steps[i], &tally);
        }
    }
    return tally;
}

static bool tally_query(const struct hvd_schedule_query *query, struct tally *tally)
{
    struct hvd_schedule *schedule = NULL;
    struct hvd_error err = {0};
    bool is_right;

    if (hvd_schedule_create(query, &schedule, &err) != 0) {
        tap_note("refused: %s", err.text);
        return false;
    }
    *tally = count_steps(schedule);
    is_right = tally->signals == hvd_schedule_facts(schedule)->signals;
    hvd_schedule_destroy(schedule);
    return is_right;
}

static void test_huge_counts(void)
{
    struct hvd_layout layout = make_layout(2, 2);
    struct hvd_schedule_query query = query_of(HVD_COLL_ALLREDUCE, &layout);
    const int64_t blocks[] = {0, huge, huge, huge, huge};
    struct tally tally = {0};

    query.count = huge;
    tap_ok(tally_query(&query, &tally) && tally.taken == 4 * huge &&
               tally.got == 4 * huge,
           "allreduce of 10 Gi elements covers input and output in order");
    query = query_of(HVD_COLL_BROADCAST, &layout);
    query.bytes = huge;
    tap_ok(tally_query(&query, &tally) && tally.taken == huge && tally.got == huge,
           "broadcast of 10 GiB covers input and output in order");
    query = query_of(HVD_COLL_ALLGATHER, &layout);
    query.blocks = blocks;
    tap_ok(tally_query(&query, &tally) && tally.taken == huge && tally.got == huge,
           "allgather of a block of 10 GiB covers input and output in order");
    hvd_layout_finish(&layout);
}

static void test_many_nodes(void)
{
    const int nodes = 1000;
    struct hvd_layout layout = make_layout(nodes, 2);
    int64_t *blocks = calloc((size_t)layout.size + 1, sizeof(*blocks));
    struct hvd_schedule_query query = query_of(HVD_COLL_ALLREDUCE, &layout);
    struct tally tally = {0};

    for (int rank = 0; rank < layout.size; rank++) {
        blocks[rank + 1] = blocks[rank] + 8;
    }
    query.count = 1;
    tap_ok(tally_query(&query, &tally) && tally.messages == 2 * 3 * 9,
           "allreduce of one element on 1000 nodes: messages to and from nine others, "
           "three times");
    query.count = 1 << 20;
    tap_ok(tally_query(&query, &tally) && tally.most_steps <= 4 * 3 * 9 + 64,
           "the steps of a tick grow with the row length, not with the nodes or the "
           "elements");
    query = query_of(HVD_COLL_BROADCAST, &layout);
    query.bytes = 1;
    tap_ok(tally_query(&query, &tally) && tally.messages == 10,
           "broadcast on 1000 nodes: the root sends to ten children");
    query = query_of(HVD_COLL_ALLGATHER, &layout);
    query.blocks = blocks;
    tap_ok(tally_query(&query, &tally) && tally.messages == 2 * (nodes - 1),
           "allgather on 1000 nodes: a message to and from each node");
    query = query_of(HVD_COLL_ALLTOALL, &layout);
    query.blocks = blocks;
    query.send = blocks;
    query.max_block = 8;
    tap_ok(tally_query(&query, &tally) && tally.messages == 2 * (layout.size - 2),
           "alltoall on 1000 nodes: a message to and from each rank of other nodes");
    free(blocks);
    hvd_layout_finish(&layout);
}

/* More chunks would overlap, but their messages would be of 270 bytes. */
static void test_short_messages(void)
{
    struct hvd_layout layout = make_layout(64, 16);
    struct hvd_schedule_query query = query_of(HVD_COLL_ALLREDUCE, &layout);
    struct tally tally = {0};

    query.count = 60 << 10;
    tap_ok(tally_query(&query, &tally) && tally.messages == 2 * 2 * 2 * 7,
           "allreduce of 240 KiB by 1024 ranks on 64 nodes: messages to and from seven "
           "others, twice down and twice up");
    query.count = 4 << 20;
    tap_ok(tally_query(&query, &tally) && tally.messages == 64 * 2 * 2 * 2 * 7,
           "allreduce of 16 MiB: chunks of a slot");
    hvd_layout_finish(&layout);
}

/* If data is not cut into parts, each message carries a whole slice, however many there
 * are: chunks need not be longer than 64 KiB. */
static void test_whole_slices(void)
{
    struct hvd_layout layout = make_layout(16, 4);
    struct hvd_schedule_query query = query_of(HVD_COLL_ALLREDUCE, &layout);
    struct hvd_algorithm_choices choices = {0};
    struct tally tally = {0};

    hvd_algorithm_choices_builtin(hvd_job_shape_of(&layout), &choices);
    choices.of[HVD_COLL_ALLREDUCE] = (struct hvd_algorithm_rows){
        .count = 1, .rows = {{.algorithm = HVD_ALGORITHM_LINEAR}}};
    choices.grid_levels = 2;
    query.choices = &choices;
    query.count = 48 << 10;
    tap_ok(
        tally_query(&query, &tally) && tally.messages == 3 * 2 * 2 * 3,
        "uncut allreduce of 192 KiB on two levels: three chunks, each with messages to "
        "and from three others, twice");
    hvd_layout_finish(&layout);
}

static void test_nothing(void)
{
    struct hvd_layout layout = make_layout(2, 2);
    const int64_t blocks[5] = {0};
    bool is_right = true;

    for (int kind = 0; kind <= HVD_COLL_ALLTOALL; kind++) {
        struct hvd_schedule_query query = query_of((enum hvd_collective)kind, &layout);
        struct tally tally = {0};

        query.blocks = blocks;
        query.send = blocks;
        is_right = is_right && tally_query(&query, &tally) && tally.signals == 0 &&
                   tally.most_steps == 0;
    }
    tap_ok(is_right, "a collective of no data has no steps");
    hvd_layout_finish(&layout);
}

static bool is_refused(const struct hvd_schedule_query *query, const char *text)
{
    struct hvd_schedule *schedule = NULL;
    struct hvd_error err = {0};
    int status = hvd_schedule_create(query, &schedule, &err);

    if (status != HVD_ERR_ARG || strstr(err.text, text) == NULL || schedule != NULL) {
        tap_note("status %d, text: %s", status, err.text);
        hvd_schedule_destroy(schedule);
        return false;
    }
    return true;
}

static void test_refusals(void)
{
    struct hvd_layout layout = make_layout(3, 1);
    const int64_t descending[] = {0, 8, 4, 12}, late[] = {4, 8, 12, 16};
    const int64_t blocks[] = {0, 8, 16, 24};
    struct hvd_schedule_query query = query_of(HVD_COLL_ALLREDUCE, &layout);

    query.rank = 3;
    tap_ok(is_refused(&query, "rank 3"), "refused: a rank that does not take part");
    query.rank = 0;
    query.count = -1;
    tap_ok(is_refused(&query, "-1"), "refused: a negative count");
    query.count = INT64_MAX / 2;
    tap_ok(is_refused(&query, "elements"), "refused: a size above 64 bits");
    query.count = 1;
    query.geometry.slots = 1;
    tap_ok(is_refused(&query, "at least 2 slots"), "refused: a single slot");
    query.geometry =
        (struct hvd_geometry){.slots = 2, .slot_bytes = 64, .recv_bytes = 64};
    query.partial_bytes = 64;
    tap_ok(is_refused(&query, "HVD_MEMORY_LIMIT"),
           "refused: a receive buffer too small for one element of each node");
    query = query_of(HVD_COLL_REDUCESCATTER, &layout);
    query.count = 10;
    query.part_begin = 8;
    query.part_count = 3;
    tap_ok(is_refused(&query, "does not lie within 10"),
           "refused: a part that is not in the input");
    query = query_of(HVD_COLL_BROADCAST, &layout);
    query.root = 3;
    tap_ok(is_refused(&query, "rank 3 of 3"), "refused: a root that does not take part");
    query = query_of(HVD_COLL_ALLGATHER, &layout);
    query.blocks = descending;
    tap_ok(is_refused(&query, "rank 1"), "refused: blocks that overlap");
    query.blocks = late;
    tap_ok(is_refused(&query, "expected blocks that start at 0"),
           "refused: blocks that begin after a gap");
    query = query_of(HVD_COLL_ALLTOALL, &layout);
    query.blocks = blocks;
    query.send = blocks;
    query.max_block = 7;
    tap_ok(is_refused(&query, "at most 7"),
           "refused: a block above the announced maximum");
    hvd_layout_finish(&layout);
}

int main(void)
{
    test_huge_counts();
    test_many_nodes();
    test_short_messages();
    test_whole_slices();
    test_nothing();
    test_refusals();
    return tap_done();
}
