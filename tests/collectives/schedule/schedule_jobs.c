/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the random jobs of the schedule tests: how ranks are spread over nodes (layout),
 * how large slots and pieces are (geometry), and which collective runs. */
#include "tests/collectives/schedule/schedule_jobs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collectives/schedule/algorithm.h"
#include "collectives/schedule/schedule_grid.h"
#include "tests/tap.h"

enum {
    NAME_BYTES = 8,
    /* the most nodes for which linear and direct take a reasonable time */
    MOST_FLAT_NODES = 64,
};

uint64_t jobs_random_below(uint64_t *random, uint64_t end)
{
    *random ^= *random << 13;
    *random ^= *random >> 7;
    *random ^= *random << 17;
    return (*random >> 16) % end;
}

/* --- layouts and geometries --- */

void jobs_random_layout(uint64_t *random, int most_ranks, int most_nodes,
                        struct hvd_layout *layout)
{
    int size = 1 + (int)jobs_random_below(random, (uint64_t)most_ranks);
    int most = size < most_nodes ? size : most_nodes;
    int nodes = 1 + (int)jobs_random_below(random, (uint64_t)most);
    int way = (int)jobs_random_below(random, 4);
    char names[JOBS_MOST_RANKS][NAME_BYTES];
    const char *hosts[JOBS_MOST_RANKS];

    for (int rank = 0; rank < size; rank++) {
        int node = (int)jobs_random_below(random, (uint64_t)nodes); /* random */

        if (way == 1) { /* blocks */
            node = rank * nodes / size;
        } else if (way == 2) { /* round robin */
            node = rank % nodes;
        } else if (way == 3) { /* most ranks on one node */
            node = rank < nodes ? rank : 0;
        }
        snprintf(names[rank], NAME_BYTES, "n%d", node);
        hosts[rank] = names[rank];
    }
    if (hvd_layout_init(layout, hosts, size, NULL) != 0) {
        abort();
    }
}

void jobs_lone_layout(int ranks, struct hvd_layout *layout)
{
    char names[JOBS_MOST_RANKS][NAME_BYTES];
    const char *hosts[JOBS_MOST_RANKS];

    for (int rank = 0; rank < ranks; rank++) {
        snprintf(names[rank], NAME_BYTES, "n%d", rank);
        hosts[rank] = names[rank];
    }
    if (hvd_layout_init(layout, hosts, ranks, NULL) != 0) {
        abort();
    }
}

static size_t round_up(size_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

struct hvd_geometry jobs_random_geometry(uint64_t *random,
                                         const struct hvd_layout *layout)
{
    struct hvd_geometry geometry = {.slots = 2 + (int)jobs_random_below(random, 4)};
    size_t least = round_up((size_t)layout->size * sizeof(double));
    size_t wish = 64 << jobs_random_below(random, 5);
    /* RECV has a place per node, and a grid needs a few more */
    size_t nodes = (size_t)layout->nodes + 2 * HVD_GRID_LEVELS;
    size_t all = round_up((size_t)layout->size * nodes * sizeof(double));

    geometry.slot_bytes = wish > least ? wish : least;
    geometry.recv_bytes = geometry.slot_bytes * (1 + jobs_random_below(random, 3));
    geometry.recv_bytes = geometry.recv_bytes > all ? geometry.recv_bytes : all;
    geometry.has_single_copy = jobs_random_below(random, 4) > 0;
    return geometry;
}

/* --- making --- */

/* Returns a random size, from nothing to several chunks; small and round sizes are
 * frequent. */
static int64_t random_size(uint64_t *random, size_t chunk)
{
    switch (jobs_random_below(random, 6)) {
    case 0:
        return (int64_t)jobs_random_below(random, 3);
    case 1:
        return (int64_t)jobs_random_below(random, chunk / 4 + 1);
    case 2:
        return (int64_t)(chunk * jobs_random_below(random, 5));
    default:
        return (int64_t)jobs_random_below(random, 9 * chunk);
    }
}

static void make_reduction(uint64_t *random, const struct hvd_layout *layout,
                           struct sim_job *job)
{
    static const enum hvd_dtype dtypes[] = {HVD_INT32,   HVD_FLOAT32,  HVD_FLOAT64,
                                            HVD_FLOAT16, HVD_BFLOAT16, HVD_UINT8};
    struct hvd_schedule_query *queries = job->queries;
    size_t slot_bytes = queries[0].geometry.slot_bytes;
    bool is_for_root = jobs_random_below(random, 3) == 0;
    int root = (int)jobs_random_below(random, (uint64_t)layout->size);
    int64_t first = 0;
    int64_t count;

    job->dtype = dtypes[jobs_random_below(random, 6)];
    job->op = jobs_random_below(random, 4) == 0 ? HVD_MAX : HVD_SUM;
    job->postscale = jobs_random_below(random, 2) == 0 ? 1.0 : 1.0 / layout->size;
    count = random_size(random, slot_bytes / hvd_dtype_bytes(job->dtype));
    for (int rank = 0; rank < layout->size; rank++) {
        int64_t left = count - first;
        int64_t part = (int64_t)jobs_random_below(random, (uint64_t)(left + 1));
        bool is_all = queries[rank].collective == HVD_COLL_ALLREDUCE;

        part = rank == layout->size - 1 ? left : part;
        if (is_for_root) {
            part = rank == root ? count : 0;
        }
        queries[rank].is_for_root = is_for_root && !is_all;
        queries[rank].root = root;
        queries[rank].count = count;
        queries[rank].element_bytes = hvd_dtype_bytes(job->dtype);
        queries[rank].partial_bytes = hvd_partial_bytes(job->dtype);
        queries[rank].part_begin = first;
        queries[rank].part_count = part;
        job->input_bytes[rank] = count * (int64_t)hvd_dtype_bytes(job->dtype);
        job->output_bytes[rank] =
            (is_all ? count : part) * (int64_t)hvd_dtype_bytes(job->dtype);
        first += part;
    }
}

static void make_broadcast(uint64_t *random, const struct hvd_layout *layout,
                           struct sim_job *job)
{
    int64_t bytes = random_size(random, job->queries[0].geometry.slot_bytes);
    int root = (int)jobs_random_below(random, (uint64_t)layout->size);

    for (int rank = 0; rank < layout->size; rank++) {
        job->queries[rank].bytes = bytes;
        job->queries[rank].root = root;
        job->input_bytes[rank] = rank == root ? bytes : 0;
        job->output_bytes[rank] = bytes;
    }
}

/* Makes the bounds of `count` blocks of random sizes. */
static int64_t *random_blocks(uint64_t *random, int count, size_t slot_bytes)
{
    int64_t *bounds = calloc((size_t)count + 1, sizeof(*bounds));
    bool is_even = jobs_random_below(random, 2) == 0;
    int64_t block = random_size(random, slot_bytes / (size_t)count + 1);

    for (int i = 0; i < count; i++) {
        if (!is_even) {
            block = jobs_random_below(random, 4) == 0
                        ? random_size(random, slot_bytes)
                        : (int64_t)jobs_random_below(random, 2 * slot_bytes / 3);
        }
        bounds[i + 1] = bounds[i] + block;
    }
    return bounds;
}

static void make_allgather(uint64_t *random, const struct hvd_layout *layout,
                           struct sim_job *job)
{
    int size = layout->size;
    size_t slot_bytes = job->queries[0].geometry.slot_bytes;
    int64_t *blocks = random_blocks(random, size, slot_bytes);

    for (int rank = 0; rank < size; rank++) {
        int64_t *own = calloc((size_t)size + 1, sizeof(*own));

        memcpy(own, blocks, ((size_t)size + 1) * sizeof(*own));
        job->queries[rank].blocks = own;
        job->input_bytes[rank] = blocks[rank + 1] - blocks[rank];
        job->output_bytes[rank] = blocks[size];
    }
    free(blocks);
}

static void make_alltoall(uint64_t *random, const struct hvd_layout *layout,
                          struct sim_job *job)
{
    int size = layout->size;
    size_t slot_bytes = job->queries[0].geometry.slot_bytes;
    int64_t most = 0;

    for (int rank = 0; rank < size; rank++) {
        int64_t *send = random_blocks(random, size, slot_bytes);

        for (int i = 0; i < size; i++) {
            most = send[i + 1] - send[i] > most ? send[i + 1] - send[i] : most;
        }
        job->queries[rank].send = send;
        job->input_bytes[rank] = send[size];
    }
    for (int rank = 0; rank < size; rank++) {
        int64_t *blocks = calloc((size_t)size + 1, sizeof(*blocks));

        for (int i = 0; i < size; i++) {
            const int64_t *send = job->queries[i].send;

            blocks[i + 1] = blocks[i] + send[rank + 1] - send[rank];
        }
        job->queries[rank].blocks = blocks;
        job->queries[rank].max_block = most;
        job->output_bytes[rank] = blocks[size];
    }
}

/* Fills an input with random numbers. No dtype reads them as NaN or as very large
 * numbers. */
static void fill(uint64_t *random, const struct sim_job *job, int rank)
{
    size_t bytes = (size_t)job->input_bytes[rank];
    char *input = job->inputs[rank];

    for (size_t i = 0; i < bytes; i++) {
        input[i] = (char)jobs_random_below(random, 256);
    }
    if (job->queries[rank].element_bytes > 1) {
        size_t step = job->queries[rank].element_bytes;

        for (size_t i = step - 1; i < bytes; i += step) {
            input[i] = (char)((input[i] & 0x80) | 0x3b);
        }
    }
}

/* Chooses at random one algorithm that fits the shape, for all sizes. Often returns NULL
 * instead: the built-in table. */
static const struct hvd_algorithm_choices *
random_choices(uint64_t *random, const struct hvd_layout *layout,
               enum hvd_collective collective, struct hvd_algorithm_choices *choices)
{
    struct hvd_job_shape shape = hvd_job_shape_of(layout);
    struct hvd_algorithm_row *row = &choices->of[collective].rows[0];

    if (layout->nodes > MOST_FLAT_NODES || jobs_random_below(random, 4) == 0) {
        return NULL;
    }
    hvd_algorithm_choices_builtin(shape, choices);
    choices->of[collective].count = 1;
    choices->grid_levels = (int)jobs_random_below(random, HVD_GRID_LEVELS + 1);
    do {
        row->algorithm = (enum hvd_algorithm)jobs_random_below(random, HVD_ALGORITHMS);
    } while (hvd_algorithm_misfit(row, collective, shape, 0) != NULL);
    row->has_one_slice = jobs_random_below(random, 2) == 0;
    row->chunk_bytes =
        jobs_random_below(random, 2) == 0 ? 0 : jobs_random_below(random, 999);
    row->window_bytes =
        jobs_random_below(random, 2) == 0 ? 0 : jobs_random_below(random, 999);
    return choices;
}

static void *arrays(const struct hvd_layout *layout, size_t bytes)
{
    return calloc((size_t)layout->size, bytes);
}

int jobs_make(uint64_t *random, enum hvd_collective collective,
              const struct hvd_layout *layout, const struct hvd_geometry *geometry,
              struct sim_job *job)
{
    struct hvd_algorithm_choices forced;
    const struct hvd_algorithm_choices *choices =
        random_choices(random, layout, collective, &forced);
    int status = 0;

    job->grid_levels = choices != NULL ? choices->grid_levels : 0;
    job->queries = arrays(layout, sizeof(*job->queries));
    job->schedules = arrays(layout, sizeof(struct hvd_schedule *));
    job->inputs = arrays(layout, sizeof(char *));
    job->outputs = arrays(layout, sizeof(char *));
    job->input_bytes = arrays(layout, sizeof(int64_t));
    job->output_bytes = arrays(layout, sizeof(int64_t));
    for (int rank = 0; rank < layout->size; rank++) {
        job->queries[rank] = (struct hvd_schedule_query){.collective = collective,
                                                         .choices = choices,
                                                         .layout = layout,
                                                         .rank = rank,
                                                         .geometry = *geometry};
    }
    if (collective == HVD_COLL_BROADCAST) {
        make_broadcast(random, layout, job);
    } else if (collective == HVD_COLL_ALLGATHER) {
        make_allgather(random, layout, job);
    } else if (collective == HVD_COLL_ALLTOALL) {
        make_alltoall(random, layout, job);
    } else {
        make_reduction(random, layout, job);
    }
    for (int rank = 0; rank < layout->size && status == 0; rank++) {
        job->inputs[rank] = malloc((size_t)job->input_bytes[rank] + 1);
        job->outputs[rank] = calloc(1, (size_t)job->output_bytes[rank] + 1);
        fill(random, job, rank);
        status = hvd_schedule_create(&job->queries[rank], &job->schedules[rank], NULL);
        job->queries[rank].choices = NULL;
    }
    return status;
}

void jobs_finish(const struct hvd_layout *layout, struct sim_job *job)
{
    for (int rank = 0; rank < layout->size; rank++) {
        hvd_schedule_destroy(job->schedules[rank]);
        free((void *)job->queries[rank].blocks);
        free((void *)job->queries[rank].send);
        free(job->inputs[rank]);
        free(job->outputs[rank]);
    }
    free(job->queries);
    free(job->schedules);
    free(job->inputs);
    free(job->outputs);
    free(job->input_bytes);
    free(job->output_bytes);
}
