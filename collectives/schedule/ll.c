/* SPDX-License-Identifier: Apache-2.0 */
/* Low latency (LL): small sums, allgathers and alltoalls on one node, through LINE. The
 * data lies in the cache line of the counter that announces it, so one transfer between
 * caches moves both; NCCL's LL protocol pairs data and flag in the same way.
 *
 *   sums     PUT my input; sync; reduce the LINEs of all ranks -> output
 *   blocks   PUT my blocks; sync; COPY my own block; GET the blocks of the others
 *
 * The schedule has one tick and stays open. */
#include "collectives/schedule/schedule_parts.h"
#include "collectives/schedule/schedule_steps.h"
#include "gpu_binding/base/attr.h"

static bool is_gather(const struct hvd_schedule *schedule)
{
    return schedule->query.collective == HVD_COLL_ALLGATHER;
}

bool hvd_ll_fits_sum(const struct hvd_schedule *schedule)
{
    return schedule->query.count <=
           HVD_LINE_BYTES / (int64_t)schedule->query.element_bytes;
}

bool hvd_ll_fits_blocks(const struct hvd_schedule *schedule)
{
    int blocks = is_gather(schedule) ? 1 : schedule->local_size;

    return schedule->query.max_block <= HVD_LINE_BYTES / blocks;
}

static struct hvd_location line_of(int owner, size_t offset)
{
    return hvd_location_of(HVD_LOCATION_LINE, owner, 0, offset);
}

static void emit_sum(struct hvd_schedule *schedule, int64_t tick HVD_UNUSED)
{
    const struct hvd_schedule_query *query = &schedule->query;
    struct hvd_range want = hvd_schedule_wanted(schedule);
    int64_t begin = want.begin * (int64_t)query->element_bytes;

    hvd_emit_wait_all(schedule, 0);
    if (schedule->local_size > 1 && !hvd_schedule_is_unread(schedule)) {
        hvd_emit_put(schedule, 0, (size_t)query->count * query->element_bytes,
                     line_of(schedule->local_rank, 0));
    }
    hvd_emit_sync(schedule);
    hvd_emit_reduce_out(schedule, line_of(0, (size_t)begin), begin, (size_t)want.count,
                        0);
}

/* --- blocks --- */

static struct hvd_range block_of(const int64_t *bounds, int rank)
{
    return (struct hvd_range){bounds[rank], bounds[rank + 1] - bounds[rank]};
}

static int rank_of(const struct hvd_schedule *schedule, int local_rank)
{
    return hvd_layout_rank(schedule->query.layout, schedule->node, local_rank);
}

/* Returns where the owner puts its block for a reader. */
static struct hvd_location line_for(const struct hvd_schedule *schedule, int owner,
                                    int reader)
{
    size_t block = (size_t)schedule->query.max_block;

    return line_of(owner, is_gather(schedule) ? 0 : (size_t)reader * block);
}

static void put_blocks(struct hvd_schedule *schedule)
{
    const struct hvd_schedule_query *query = &schedule->query;
    int me = schedule->local_rank, size = schedule->local_size;

    if (is_gather(schedule) && size > 1) {
        hvd_emit_put(schedule, 0, (size_t)block_of(query->blocks, query->rank).count,
                     line_for(schedule, me, me));
    }
    for (int i = 1; i < size && !is_gather(schedule); i++) {
        int other = (me + i) % size;
        struct hvd_range block = block_of(query->send, rank_of(schedule, other));

        hvd_emit_put(schedule, block.begin, (size_t)block.count,
                     line_for(schedule, me, other));
    }
}

static void get_blocks(struct hvd_schedule *schedule)
{
    const struct hvd_schedule_query *query = &schedule->query;
    struct hvd_range own = block_of(query->blocks, query->rank);
    int me = schedule->local_rank, size = schedule->local_size;

    hvd_emit_copy(schedule, is_gather(schedule) ? 0 : query->send[query->rank], own.begin,
                  (size_t)own.count);
    for (int i = 1; i < size; i++) {
        int other = (me + i) % size;
        struct hvd_range block = block_of(query->blocks, rank_of(schedule, other));

        hvd_emit_get(schedule, line_for(schedule, other, me), block.begin,
                     (size_t)block.count);
    }
}

static void emit_blocks(struct hvd_schedule *schedule, int64_t tick HVD_UNUSED)
{
    hvd_emit_wait_all(schedule, 0);
    put_blocks(schedule);
    hvd_emit_sync(schedule);
    get_blocks(schedule);
}

int hvd_ll_set_up(struct hvd_schedule *schedule, struct hvd_error *err HVD_UNUSED)
{
    const struct hvd_schedule_query *query = &schedule->query;
    bool is_sum = query->collective == HVD_COLL_ALLREDUCE ||
                  query->collective == HVD_COLL_REDUCESCATTER;

    schedule->emit = is_sum ? emit_sum : emit_blocks;
    schedule->facts.ticks = (is_sum ? query->count : query->max_block) > 0 ? 1 : 0;
    schedule->facts.signals = (uint64_t)schedule->facts.ticks;
    schedule->facts.turns = schedule->facts.ticks;
    schedule->step_capacity = 8 + 2 * schedule->local_size;
    return 0;
}
