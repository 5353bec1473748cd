/* SPDX-License-Identifier: Apache-2.0 */
/* The built-in table of algorithms, and the lookup of its rows. */
#include "collectives/schedule/algorithm.h"

#include <string.h>

#include "collectives/schedule/schedule_grid.h"
#include "collectives/schedule/schedule_parts.h"
#include "collectives/schedule/schedule.h"

/* small_bytes is the size from which two_shot replaces one_shot on one node, and also the
 * size from which linear cuts a chunk into several slices between nodes. Measured by
 * hvd-bench --tune on a virtual machine of two cores (Intel Xeon, 2 MiB of L2 each): with
 * 4 ranks one_shot and two_shot break even between 64 and 128 KiB, with 2 ranks one_shot
 * is faster at any size. Between two nodes of 2 ranks, over TCP, several slices are
 * faster from somewhere between 16 and 64 KiB on. With more than few_ranks ranks each
 * rank reduces more in one_shot, so two_shot starts earlier; that value is an estimate.
 */
static const int64_t small_bytes = 16 << 10;
static const int64_t small_bytes_of_few = 64 << 10;
static const int few_ranks = 4;

/* Between nodes, direct and linear take the same time when the bytes of a slice times
 * (partners - 1) equal this value: the additional messages of direct then cost as much
 * time as its smaller sums and messages save. Calculated, not measured. */
static const int64_t worth_cutting = 32 << 10;

struct hvd_job_shape hvd_job_shape_of(const struct hvd_layout *layout)
{
    return (struct hvd_job_shape){.nodes = layout->nodes,
                                  .ranks = hvd_slices_widest(layout)};
}

/* Measured in the same way. cma_read is faster than slots for blocks of cma_read_bytes or
 * more. For a broadcast by two ranks, cma_write is the fastest from shared_bytes on,
 * although the root waits for the other rank; by three ranks, from twice that size on.
 * With four or more ranks, rolling is the fastest at any size. */
static const int64_t cma_read_bytes = 8 << 10;
static const int64_t shared_bytes = 64 << 10;

/* Measured in the same way. With cma_write ranks store into outputs that the library
 * allocates on huge pages, so that the kernel pins 512 times fewer pages. From one huge
 * page on this is faster than cma_read; for an allgather of two ranks it is from
 * stored_bytes_of_two on. From streamed_bytes on an allgather goes through slots again,
 * because the copy out of a slot can bypass the caches (struct hvd_piece). */
static const int64_t stored_bytes = 2 << 20;
static const int64_t stored_bytes_of_two = 512 << 10;
static const int64_t streamed_bytes = 16 << 20;

/* Measured in the same way: the sizes from which cma_reduce is used. A smaller allreduce
 * of two ranks is faster through slots, because both copies of the data fit the caches.
 * From streamed_sum_bytes on it is faster through slots again, because its output can
 * bypass the caches; a copy by the kernel cannot. With more than two ranks an allreduce
 * by cma_reduce is too slow, because every rank has to pin every page. */
static const int64_t cma_reduce_bytes = 192 << 10;
static const int64_t streamed_sum_bytes = 18 << 20;
static const int64_t cma_scatter_bytes = 12 << 10; /* with two ranks */

/* Measured in the same way on two cores of an AMD EPYC (Zen 5, a share of a large L3). A
 * copy by the kernel between two processes takes 3 us to start. After that it takes twice
 * as long as a copy through slots if both cores share an L3, and at best 10 % less if
 * each core has its own. So sums and broadcasts use slots at any size, and the other
 * collectives use slots for all but large blocks. From 8 MiB on two_shot is faster than
 * one_shot, with any number of ranks. Between two ranks that share an L3, an allreduce in
 * one chunk of up to a slot is faster than in overlapping chunks of 64 KiB: 1.13 times
 * with 256 KiB; with 64 KiB and from 1 MiB on there is no difference. */
static const int64_t two_shot_bytes_of_amd = 8 << 20;
static const int64_t whole_bytes_of_two_amd = 64 << 10;
static const size_t whole_chunk = 256 << 10;
static const int64_t stored_bytes_of_two_amd = 16 << 20;
/* bytes of a block; for two ranks */
static const int64_t cma_read_bytes_of_two_amd = 32 << 10;
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
        if (ranks == 2 && collective == HVD_COLL_ALLREDUCE) {
            add_row(list, whole_bytes_of_two_amd, HVD_ALGORITHM_ONE_SHOT)->chunk_bytes =
                whole_chunk;
        }
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

/* Fills in the rows of a sum between nodes. partners: the number of other nodes to which
 * each node sends. */
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

/* Fills in the rows of the collectives that only move data. */
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
