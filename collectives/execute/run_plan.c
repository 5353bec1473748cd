/* SPDX-License-Identifier: Apache-2.0 */
/* Plans an agreed batch: which memory takes part and which schedule moves it. */
#include <stdlib.h>
#include <string.h>

#include "collectives/execute/run_adasum.h"
#include "collectives/execute/run_alltoall.h"
#include "collectives/execute/run_convert.h"
#include "collectives/execute/run_memory.h"
#include "collectives/execute/run_shared.h"
#include "collectives/execute/run_state.h"

struct hvd_schedule_query hvd_run_query(const struct hvd_run *run,
                                        enum hvd_collective collective)
{
    const struct hvd_team *team = run->team;
    enum hvd_dtype dtype = run->reduction.dtype;

    return (struct hvd_schedule_query){
        .collective = collective,
        .choices = &team->choices,
        .layout = team->layout,
        .rank = team->rank,
        .geometry = hvd_team_geometry(team),
        .element_bytes = hvd_dtype_bytes(dtype),
        .partial_bytes = hvd_partial_bytes(dtype),
        .blocks = run->blocks,
        .send = run->send,
    };
}

int hvd_run_allocate(struct hvd_entry *entry, int64_t rows)
{
    size_t bytes = (size_t)(rows * hvd_entry_row_bytes(entry));

    entry->result_rows = rows;
    if (bytes == 0) {
        return 0;
    }
    entry->result = hvd_run_memory(bytes);
    return entry->result != NULL ? 0 : HVD_ERR_NOMEM;
}

int64_t hvd_run_entry_bytes(const struct hvd_entry *entry)
{
    return hvd_entry_count(entry) * (int64_t)hvd_dtype_bytes(entry->proposal.dtype);
}

/* For sums that are read where they are. */
static void offer_whole(const struct hvd_run *run, struct hvd_schedule_query *query)
{
    bool is_single = run->entry_count == 1 || run->convert != NULL;
    bool is_plain = is_single && run->prescale == 1.0;

    query->geometry.has_single_copy = query->geometry.has_single_copy && is_plain;
}

/* A rank that has joined adds up its share for the others all the same. */
static int stand_in(struct hvd_run *run)
{
    if (!hvd_schedule_facts(run->schedule)->is_offered || !run->entries[0]->is_absent ||
        run->convert != NULL) {
        return 0;
    }
    run->stand_in = calloc((size_t)run->input.begin[1], 1);
    run->input.data[0] = run->stand_in;
    run->output.data[0] = run->stand_in;
    return run->stand_in != NULL ? 0 : HVD_ERR_NOMEM;
}

/* Input and output are the tensors, one behind the other. */
static int set_tensors(struct hvd_run *run)
{
    if (hvd_segments_init(&run->input, run->entry_count) != 0 ||
        hvd_segments_init(&run->output, run->entry_count) != 0) {
        return HVD_ERR_NOMEM;
    }
    for (int i = 0; i < run->entry_count; i++) {
        struct hvd_entry *entry = run->entries[i];
        int64_t end = run->input.begin[i] + hvd_run_entry_bytes(entry);

        run->input.data[i] = entry->is_absent ? NULL : (char *)entry->input;
        run->output.data[i] = entry->is_absent ? NULL : entry->output;
        run->input.begin[i + 1] = end;
        run->output.begin[i + 1] = end;
    }
    return 0;
}

/* Of tensors that all ranks of the node map. */
static int share_whole(struct hvd_run *run, struct hvd_schedule_query *query)
{
    if (!run->is_shared || run->prescale != 1.0 ||
        !hvd_shm_region_can_map(run->team->region) || run->convert != NULL) {
        return 0;
    }
    query->shared_tensors = run->entry_count;
    return hvd_run_shared_plan(run);
}

static int plan_allreduce(struct hvd_run *run, struct hvd_error *err)
{
    struct hvd_schedule_query query;
    int status = set_tensors(run);

    if (status == 0 && run->entries[0]->proposal.wire != 0) {
        status = hvd_run_convert_plan(run);
    }
    if (status != 0) {
        return status;
    }
    query = hvd_run_query(run, HVD_COLL_ALLREDUCE);
    query.count = run->input.begin[run->input.count] / (int64_t)query.element_bytes;
    status = share_whole(run, &query);
    if (status != 0) {
        return status;
    }
    offer_whole(run, &query);
    status = hvd_schedule_create(&query, &run->schedule, err);
    return status != 0 ? status : stand_in(run);
}

static int plan_reducescatter(struct hvd_run *run, struct hvd_error *err)
{
    struct hvd_schedule_query query = hvd_run_query(run, HVD_COLL_REDUCESCATTER);
    struct hvd_entry *entry = run->entries[0];
    int64_t rows = entry->proposal.shape[0];
    int64_t size = run->team->layout->size, rank = run->team->rank;
    int64_t each = rows / size, extra = rows % size;
    int64_t row_count = hvd_entry_row_bytes(entry) / (int64_t)query.element_bytes;
    int64_t part_rows = each + (rank < extra ? 1 : 0);

    query.count = rows * row_count;
    query.part_begin = (rank * each + (rank < extra ? rank : extra)) * row_count;
    query.part_count = part_rows * row_count;
    offer_whole(run, &query);
    if (hvd_segments_init_one(&run->input, (void *)entry->input,
                              hvd_run_entry_bytes(entry)) != 0 ||
        hvd_segments_init_one(&run->output, entry->output,
                              query.part_count * (int64_t)query.element_bytes) != 0) {
        return HVD_ERR_NOMEM;
    }
    return hvd_schedule_create(&query, &run->schedule, err);
}

static int plan_broadcast(struct hvd_run *run, struct hvd_error *err)
{
    struct hvd_schedule_query query = hvd_run_query(run, HVD_COLL_BROADCAST);
    struct hvd_entry *entry = run->entries[0];

    query.bytes = hvd_run_entry_bytes(entry);
    query.root = hvd_team_member(run->team, entry->proposal.root);
    if (query.root < 0) {
        return hvd_fail(
            err, HVD_ERR_ARG,
            "tensor %s is broadcast from rank %d, which is not in the process "
            "set",
            entry->proposal.name, entry->proposal.root);
    }
    if (hvd_segments_init_one(&run->input, (void *)entry->input, query.bytes) != 0 ||
        hvd_segments_init_one(&run->output, entry->output, query.bytes) != 0) {
        return HVD_ERR_NOMEM;
    }
    return hvd_schedule_create(&query, &run->schedule, err);
}

static int plan_allgather(struct hvd_run *run, const int64_t *rows, struct hvd_error *err)
{
    struct hvd_schedule_query query;
    struct hvd_entry *entry = run->entries[0];
    int64_t row_bytes = hvd_entry_row_bytes(entry);
    int size = run->team->layout->size;
    int64_t total = 0;

    run->blocks = calloc((size_t)size + 1, sizeof(run->blocks[0]));
    if (run->blocks == NULL) {
        return HVD_ERR_NOMEM;
    }
    for (int i = 0; i < size; i++) {
        total += rows[i];
        run->blocks[i + 1] = total * row_bytes;
    }
    if (hvd_run_allocate(entry, total) != 0 ||
        hvd_segments_init_one(&run->input, (void *)entry->input,
                              hvd_run_entry_bytes(entry)) != 0 ||
        hvd_segments_init_one(&run->output, entry->result, run->blocks[size]) != 0) {
        return HVD_ERR_NOMEM;
    }
    query = hvd_run_query(run, HVD_COLL_ALLGATHER);
    return hvd_schedule_create(&query, &run->schedule, err);
}

static void rewind_schedule(struct hvd_run *run)
{
    run->tick = 0;
    run->step = 0;
    run->step_count = 0;
}

int hvd_run_next_schedule(struct hvd_run *run)
{
    int status;

    rewind_schedule(run);
    if (run->convert != NULL) {
        hvd_run_convert_next(run);
        return 0;
    }
    if (run->adasum == NULL && !run->is_counting) {
        run->is_done = true;
        return 0;
    }
    hvd_schedule_destroy(run->schedule);
    run->schedule = NULL;
    status = run->adasum != NULL ? hvd_run_adasum_next(run) : hvd_run_alltoall_data(run);
    run->is_done = run->schedule == NULL && !run->is_computing;
    return status;
}

int hvd_run_again(struct hvd_run *run)
{
    if (run->adasum != NULL) {
        return HVD_ERR_ARG;
    }
    run->is_done = run->schedule == NULL;
    if (run->convert != NULL) {
        hvd_run_convert_again(run);
    }
    return 0;
}

static int plan_first(struct hvd_run *run, const int64_t *rows, struct hvd_error *err)
{
    switch (run->kind) {
    case HVD_KIND_ALLREDUCE:
        return plan_allreduce(run, err);
    case HVD_KIND_ADASUM:
        return hvd_run_adasum_plan(run, err);
    case HVD_KIND_REDUCESCATTER:
        return plan_reducescatter(run, err);
    case HVD_KIND_BROADCAST:
        return plan_broadcast(run, err);
    case HVD_KIND_ALLGATHER:
        return plan_allgather(run, rows, err);
    case HVD_KIND_ALLTOALL:
        return hvd_run_alltoall_counts(run, err);
    default:
        return 0; /* a barrier is over when it is agreed */
    }
}

/* 16-bit floats are scaled once they are float: so they are rounded only at the end. */
static void set_reduction(struct hvd_run *run)
{
    const struct hvd_proposal *proposal = &run->entries[0]->proposal;
    bool is_widened =
        hvd_partial_bytes(proposal->dtype) > hvd_dtype_bytes(proposal->dtype);
    bool reduces = run->kind == HVD_KIND_ALLREDUCE || run->kind == HVD_KIND_REDUCESCATTER;

    run->prescale = reduces && !is_widened ? proposal->prescale : 1.0;
    run->reduction = (struct hvd_reduction){
        .dtype = proposal->dtype,
        .op = proposal->op,
        .prescale = reduces && is_widened ? proposal->prescale : 1.0,
        .postscale = proposal->postscale,
    };
    if (reduces && proposal->op == HVD_AVERAGE) {
        run->reduction.divisor = (uint32_t)run->team->layout->size;
    }
}

int hvd_run_create(struct hvd_team *team, const struct hvd_batch_header *header,
                   struct hvd_entry *const *entries, const int64_t *rows,
                   struct hvd_run **out, struct hvd_error *err)
{
    struct hvd_run *run = calloc(1, sizeof(*run));
    size_t count = (size_t)header->count;
    int sources = team->layout->nodes;
    int status = HVD_ERR_NOMEM;

    if (run != NULL) {
        sources = team->local_size > sources ? team->local_size : sources;
        run->team = team;
        run->kind = header->kind;
        run->max_block = header->max_block;
        run->is_shared = header->is_shared;
        run->entry_count = (int)count;
        run->entries = calloc(count, sizeof(run->entries[0]));
        run->sources = calloc((size_t)sources, sizeof(run->sources[0]));
    }
    if (run != NULL && run->entries != NULL && run->sources != NULL) {
        memcpy(run->entries, entries, count * sizeof(run->entries[0]));
        set_reduction(run);
        status = plan_first(run, rows, err);
        run->is_done = run->schedule == NULL && !run->is_computing;
    }
    if (status == HVD_ERR_NOMEM) {
        hvd_fail(err, status, "no memory for tensor %s", entries[0]->proposal.name);
    }
    if (status != 0) {
        hvd_run_destroy(run);
        return status;
    }
    *out = run;
    return 0;
}

void hvd_run_forget(struct hvd_run *run)
{
    if (run->convert != NULL) {
        hvd_run_convert_forget(run->convert);
        return;
    }
    hvd_segments_forget(&run->input);
    hvd_segments_forget(&run->output);
}

void hvd_run_make_void(struct hvd_run *run, struct hvd_entry *const *entries)
{
    memcpy(run->entries, entries, (size_t)run->entry_count * sizeof(run->entries[0]));
    hvd_run_forget(run);
}

void hvd_run_destroy(struct hvd_run *run)
{
    if (run == NULL) {
        return;
    }
    hvd_schedule_destroy(run->schedule);
    hvd_segments_finish(&run->input);
    hvd_segments_finish(&run->output);
    hvd_op_queue_finish(&run->sends);
    hvd_op_queue_finish(&run->recvs);
    hvd_run_adasum_destroy(run->adasum);
    hvd_run_convert_destroy(run->convert);
    free(run->stand_in);
    free(run->places);
    free(run->blocks);
    free(run->send);
    free(run->rows_out);
    free(run->rows_in);
    free(run->sources);
    free(run->entries);
    free(run);
}
