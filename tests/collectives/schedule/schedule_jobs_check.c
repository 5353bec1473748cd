/* SPDX-License-Identifier: Apache-2.0 */
/* Computes the expected results of a job's collective. */
#include <stdlib.h>
#include <string.h>

#include "collectives/schedule/schedule_grid.h"
#include "tests/collectives/schedule/schedule_jobs.h"
#include "tests/tap.h"

/* Reduces each row of a level of the grid, `count` elements per node: first the members
 * of the row in order, then its extra nodes. Before, sources[i] is the data of node i;
 * afterwards, it is the sum of row i. */
static void reduce_rows(const struct sim_job *job, const struct hvd_grid_level *level,
                        char **sources, bool is_last)
{
    struct hvd_reduction between = hvd_reduction_of(job->dtype, job->op);
    size_t count = (size_t)job->queries[0].count;
    int members = level->width * level->rows;

    between.postscale = job->postscale;
    between.from_partial = true;
    between.to_partial = !is_last;
    for (int row = 0; row < level->rows; row++) {
        const void *parts[JOBS_MOST_RANKS];
        int number = 0;

        for (int i = 0; i < level->width; i++) {
            parts[number++] = sources[row * level->width + i];
        }
        for (int extra = members + row; extra < level->count; extra += level->rows) {
            parts[number++] = sources[extra];
        }
        hvd_reduce(&between, parts, number, count, sources[row * level->width]);
    }
    for (int row = 0; row < level->rows; row++) {
        char *sum = sources[row * level->width];

        sources[row * level->width] = sources[row];
        sources[row] = sum;
    }
}

/* Returns the reduction of all inputs: first over the ranks of each node in order, then
 * over the nodes, level by level of their grid. */
static char *reduced(const struct hvd_layout *layout, const struct sim_job *job)
{
    size_t count = (size_t)job->queries[0].count;
    struct hvd_reduction within = hvd_reduction_of(job->dtype, job->op);
    char *nodes[JOBS_MOST_RANKS];
    struct hvd_grid grid;

    within.to_partial = true;
    for (int node = 0; node < layout->nodes; node++) {
        int local_size = hvd_layout_local_size(layout, node);
        const void *sources[JOBS_MOST_RANKS];

        for (int i = 0; i < local_size; i++) {
            sources[i] = job->inputs[hvd_layout_rank(layout, node, i)];
        }
        nodes[node] = malloc(count * hvd_partial_bytes(job->dtype) + 1);
        hvd_reduce(&within, sources, local_size, count, nodes[node]);
    }
    hvd_grid_make(layout->nodes, job->grid_levels, &grid);
    for (int i = 0; i < grid.levels; i++) {
        reduce_rows(job, &grid.level[i], nodes, i == grid.levels - 1);
    }
    for (int node = 1; node < layout->nodes; node++) {
        free(nodes[node]);
    }
    return nodes[0];
}

/* Compares an output with the expected bytes, and notes the first that differs. */
static bool equals(const struct sim_job *job, int rank, int64_t begin,
                   const char *expected, int64_t bytes)
{
    const char *found = job->outputs[rank] + begin;

    for (int64_t i = 0; i < bytes; i++) {
        if (found[i] != expected[i]) {
            tap_note("rank %d, output byte %lld of %lld: expected %02x, found %02x", rank,
                     (long long)(begin + i), (long long)job->output_bytes[rank],
                     (unsigned char)expected[i], (unsigned char)found[i]);
            return false;
        }
    }
    return true;
}

static bool is_reduced(const struct sim_job *job, int rank, const char *result)
{
    const struct hvd_schedule_query *query = &job->queries[rank];
    bool is_all = query->collective == HVD_COLL_ALLREDUCE;
    int64_t skipped = is_all ? 0 : query->part_begin * (int64_t)query->element_bytes;

    return equals(job, rank, 0, result + skipped, job->output_bytes[rank]);
}

/* Whether a rank has the right block from rank `from`. */
static bool has_block(const struct sim_job *job, int rank, int from)
{
    const struct hvd_schedule_query *query = &job->queries[rank];
    const char *expected = job->inputs[from];

    if (query->collective == HVD_COLL_ALLTOALL) {
        expected += job->queries[from].send[rank];
    }
    return equals(job, rank, query->blocks[from], expected,
                  query->blocks[from + 1] - query->blocks[from]);
}

bool jobs_are_right(const struct hvd_layout *layout, const struct sim_job *job)
{
    enum hvd_collective collective = job->queries[0].collective;
    bool is_reduction =
        collective == HVD_COLL_ALLREDUCE || collective == HVD_COLL_REDUCESCATTER;
    char *result = is_reduction ? reduced(layout, job) : NULL;
    bool is_right = true;

    for (int rank = 0; rank < layout->size && is_right; rank++) {
        if (is_reduction) {
            is_right = is_reduced(job, rank, result);
        } else if (collective == HVD_COLL_BROADCAST) {
            is_right = equals(job, rank, 0, job->inputs[job->queries[rank].root],
                              job->output_bytes[rank]);
        }
        for (int from = 0; !is_reduction && collective != HVD_COLL_BROADCAST &&
                           from < layout->size && is_right;
             from++) {
            is_right = has_block(job, rank, from);
        }
    }
    free(result);
    return is_right;
}
