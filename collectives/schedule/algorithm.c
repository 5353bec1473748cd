/* SPDX-License-Identifier: Apache-2.0 */
/* The built-in table, and how rows are found. */
#include "collectives/schedule/algorithm.h"

#include <string.h>

#include "collectives/schedule/schedule_grid.h"
#include "collectives/schedule/schedule_parts.h"
#include "collectives/schedule/schedule.h"

/* Measured by hvd-bench --tune on a virtual machine of two cores (Intel Xeon, 2 MiB of L2
 * each): with 4 ranks one_shot and two_shot cross between 64 and 128 KiB, with 2 ranks
 * one_shot is ahead of two_shot everywhere; between two nodes of 2 ranks, over TCP, more
 * than one slice pays from somewhere between 16 and 64 KiB on; two nodes of one rank need
 * nothing but pair. With more ranks one_shot adds up more on each: not measured. */
static const int64_t small_bytes = 16 << 10;
static const int64_t small_bytes_of_few = 64 << 10;
static const int few_ranks = 4;

/* Calculated, not measured: of several nodes, where the additional messages of a part
 * take as long as what the part saves. */
static const int64_t worth_cutting = 32 << 10;

struct hvd_job_shape hvd_job_shape_of(const struct hvd_layout *layout)
{
    return (struct hvd_job_shape){.nodes = layout->nodes,
                                  .ranks = hvd_slices_widest(layout)};
}

/* Measured likewise: of a block that one other rank wants, and that several do; it is
 * then put into a slot once. A broadcast must be as long for it to pay that the root
 * waits for the others; of three ranks twice as long, and of four and more slots are
 * ahead at any size. */
static const int64_t cma_read_bytes = 8 << 10;
static const int64_t shared_bytes = 64 << 10;

/* Likewise: outputs of the library's own in which others store lie on huge pages, of
 * which the kernel takes hold 512 times as fast: from one such page on that is ahead of
 * inputs in which they read, of 2 ranks that gather before. What all gather is better put
 * into a slot once again where it then goes past the caches (struct hvd_piece). */
static const int64_t stored_bytes = 2 << 20;
static const int64_t stored_bytes_of_two = 512 << 10;
static const int64_t streamed_bytes = 16 << 20;

/* Likewise: sums that are read where they are. Of two ranks a small allreduce fits the
 * caches twice, and one of 20 MiB is better stored past them, which the kernel's copy is
 * not. With more ranks each page is taken hold of by each, which is too much for an
 * allreduce. */
static const int64_t cma_reduce_bytes = 192 << 10;
static const int64_t streamed_sum_bytes = 18 << 20;
static const int64_t cma_scatter_bytes = 12 << 10; /* of two ranks */

/* Likewise, on two cores of an AMD EPYC (Zen 5, a share in a large L3): memory that the
 * kernel copies between processes costs 3 us to begin with, and then about twice what
 * slots do where both cores have one L3, as much or 10 % less where each has its own. So
 * sums and broadcasts go through slots at any size, blocks until they are large. An
 * output of 8 MiB and more is better fetched than added up by each, with any number of
 * ranks. */
static const int64_t two_shot_bytes_of_amd = 8 << 20;
static const int64_t stored_bytes_of_two_amd = 16 << 20;
static const int64_t cma_read_bytes_of_two_amd = 32 << 10; /* of a block, as the next */
static const int64_t cma_read_bytes_of_amd = 128 << 10;

static struct hvd_algorithm_row *add_row(struct hvd_algorithm_rows *list, int64_t from,
                                         enum hvd_algorithm algorithm)
{
    struct hvd_algorithm_row *row = &list->rows[list->count++];

    *row = (struct hvd_algorithm_row){.from = from, .algorithm = algorithm};
    return row;
}

static void choose_large_sum(struct hvd_job_shape shape, enum hvd_collective collective,
                             struct hvd_algorithm_rows *list)
{
    int ranks = shape.ranks;

    if (shape.cpu == HVD_PROCESSOR_AMD) {
        if (ranks == 2 || (ranks > 2 && collective == HVD_COLL_REDUCESCATTER)) {
            add_row(list, two_shot_bytes_of_amd, HVD_ALGORITHM_TWO_SHOT);
        }
    } else if (collective == HVD_COLL_REDUCESCATTER && ranks > 1) {
        add_row(list, ranks == 2 ? cma_scatter_bytes : cma_reduce_bytes,
                HVD_ALGORITHM_CMA_REDUCE);
    } else if (ranks == 2) {
        add_row(list, cma_reduce_bytes, HVD_ALGORITHM_CMA_REDUCE);
        add_row(list, streamed_sum_bytes, HVD_ALGORITHM_ONE_SHOT);
    }
}

static void choose_on_node(struct hvd_job_shape shape, enum hvd_collective collective,
                           struct hvd_algorithm_rows *list)
{
    int64_t small = shape.ranks > few_ranks ? small_bytes : small_bytes_of_few;

    add_row(list, 0, HVD_ALGORITHM_LL);
    add_row(list, HVD_LINE_BYTES + 1, HVD_ALGORITHM_ONE_SHOT);
    if (shape.ranks > 2 && collective == HVD_COLL_ALLREDUCE) {
        add_row(list, small + 1, HVD_ALGORITHM_TWO_SHOT);
    }
    choose_large_sum(shape, collective, list);
}

size_t hvd_algorithm_message_chunk(struct hvd_job_shape shape)
{
    return shape.nodes == 2 && shape.ranks == 2 ? 2 * HVD_SCHEDULE_MESSAGE_BYTES : 0;
}

/* Between nodes, of which each talks to `partners`. */
static void choose_between(struct hvd_job_shape shape, int partners,
                           struct hvd_algorithm_rows *list)
{
    int64_t cut = partners > 1 ? worth_cutting / (partners - 1) : INT64_MAX / shape.ranks;

    if (shape.nodes == 2 && shape.ranks == 1) {
        add_row(list, 0, HVD_ALGORITHM_PAIR);
        return;
    }
    add_row(list, 0, HVD_ALGORITHM_LINEAR)->has_one_slice = true;
    if (cut < small_bytes) {
        add_row(list, cut + 1, HVD_ALGORITHM_DIRECT)->has_one_slice = true;
    }
    cut *= shape.ranks;
    if (cut > small_bytes) {
        add_row(list, small_bytes + 1, HVD_ALGORITHM_LINEAR)->chunk_bytes =
            hvd_algorithm_message_chunk(shape);
    }
    if (partners > 1) {
        add_row(list, (cut > small_bytes ? cut : small_bytes) + 1, HVD_ALGORITHM_DIRECT);
    }
}

static void choose_broadcast(struct hvd_job_shape shape, struct hvd_algorithm_rows *list)
{
    add_row(list, 0, HVD_ALGORITHM_ROLLING);
    if (shape.cpu == HVD_PROCESSOR_AMD) {
        return;
    }
    if (shape.ranks <= 2) {
        add_row(list, cma_read_bytes, HVD_ALGORITHM_CMA_READ);
    }
    if (shape.ranks <= 3) {
        add_row(list, shape.ranks == 3 ? 2 * shared_bytes : shared_bytes,
                HVD_ALGORITHM_CMA_WRITE);
    }
}

static void choose_allgather(struct hvd_job_shape shape, struct hvd_algorithm_rows *list)
{
    int ranks = shape.ranks;

    add_row(list, 0, HVD_ALGORITHM_CICO);
    if (shape.cpu == HVD_PROCESSOR_AMD) {
        if (ranks == 2) {
            add_row(list, stored_bytes_of_two_amd, HVD_ALGORITHM_CMA_WRITE);
        }
    } else if (ranks == 2) {
        add_row(list, cma_read_bytes * ranks, HVD_ALGORITHM_CMA_READ);
        add_row(list, stored_bytes_of_two, HVD_ALGORITHM_CMA_WRITE);
    } else {
        add_row(list, stored_bytes, HVD_ALGORITHM_CMA_WRITE);
        add_row(list, streamed_bytes, HVD_ALGORITHM_CICO);
    }
}

static void choose_alltoall(struct hvd_job_shape shape, struct hvd_algorithm_rows *list)
{
    int64_t block = shape.cpu != HVD_PROCESSOR_AMD ? cma_read_bytes
                    : shape.ranks == 2             ? cma_read_bytes_of_two_amd
                                                   : cma_read_bytes_of_amd;

    add_row(list, 0, HVD_ALGORITHM_CICO);
    if (block * shape.ranks < stored_bytes) {
        add_row(list, block * shape.ranks, HVD_ALGORITHM_CMA_READ);
    }
    add_row(list, stored_bytes, HVD_ALGORITHM_CMA_WRITE);
}

/* Blocks that are not added up. */
static void choose_moves(struct hvd_job_shape shape, struct hvd_algorithm_rows *of)
{
    if (shape.nodes > 1) {
        add_row(&of[HVD_COLL_BROADCAST], 0, HVD_ALGORITHM_TREE);
        add_row(&of[HVD_COLL_ALLGATHER], 0, HVD_ALGORITHM_RING);
        add_row(&of[HVD_COLL_ALLTOALL], 0, HVD_ALGORITHM_PAIRWISE);
        return;
    }
    choose_broadcast(shape, &of[HVD_COLL_BROADCAST]);
    choose_allgather(shape, &of[HVD_COLL_ALLGATHER]);
    choose_alltoall(shape, &of[HVD_COLL_ALLTOALL]);
}

void hvd_algorithm_choices_builtin(struct hvd_job_shape shape,
                                   struct hvd_algorithm_choices *choices)
{
    static const enum hvd_collective sums[] = {HVD_COLL_ALLREDUCE,
                                               HVD_COLL_REDUCESCATTER};
    struct hvd_grid grid;

    *choices = (struct hvd_algorithm_choices){0};
    hvd_grid_make(shape.nodes, 0, &grid);
    for (int i = 0; i < 2; i++) {
        if (shape.nodes == 1) {
            choose_on_node(shape, sums[i], &choices->of[sums[i]]);
        } else {
            choose_between(shape, hvd_grid_messages(&grid), &choices->of[sums[i]]);
        }
    }
    choose_moves(shape, choices->of);
}

const struct hvd_algorithm_row *
hvd_algorithm_for(const struct hvd_algorithm_choices *choices,
                  enum hvd_collective collective, int64_t bytes)
{
    const struct hvd_algorithm_rows *list = &choices->of[collective];
    int row = list->count - 1;

    while (row > 0 && list->rows[row].from > bytes) {
        row--;
    }
    return &list->rows[row];
}

static const char *const collectives[] = {
    [HVD_COLL_ALLREDUCE] = "allreduce", [HVD_COLL_REDUCESCATTER] = "reducescatter",
    [HVD_COLL_ALLGATHER] = "allgather", [HVD_COLL_BROADCAST] = "broadcast",
    [HVD_COLL_ALLTOALL] = "alltoall",
};

const char *hvd_collective_name(enum hvd_collective collective)
{
    return collectives[collective];
}

int hvd_collective_find(const char *name)
{
    for (int i = 0; i < HVD_COLLECTIVES; i++) {
        if (strcmp(collectives[i], name) == 0) {
            return i;
        }
    }
    return -1;
}

/* --- this machine --- */

struct hvd_job_shape hvd_job_shape_here(const struct hvd_layout *layout)
{
    struct hvd_job_shape shape = hvd_job_shape_of(layout);

    shape.cpu = hvd_processor_here();
    return shape;
}

enum hvd_processor hvd_processor_here(void)
{
#ifdef __x86_64__
    __builtin_cpu_init();
    return __builtin_cpu_is("amd") ? HVD_PROCESSOR_AMD : HVD_PROCESSOR_OTHER;
#else
    return HVD_PROCESSOR_OTHER;
#endif
}
