/* SPDX-License-Identifier: Apache-2.0 */
/* Runs one agreed batch: finds the memory that takes part, creates the schedules that
 * move it, and executes them. run_steps.c has the steps of a schedule. */
#include "collectives/run/run.h"

#include <stdlib.h>
#include <string.h>

#include "collectives/run/run_state.h"
#include "collectives/transport/shm/shm_reach.h"
#include "gpu_binding/base/log.h"

/* --- preparing --- */

static struct hvd_schedule_query query_of(const struct hvd_run *run,
                                          enum hvd_collective collective)
{
    const struct hvd_team *team = run->team;
    enum hvd_dtype dtype = run->reduction.dtype;
    struct hvd_geometry geometry = team->geometry;

    geometry.has_single_copy = geometry.has_single_copy && team->layout->nodes == 1 &&
                               hvd_shm_can_reach(team->shm);
    return (struct hvd_schedule_query){
        .collective = collective,
        .choices = &team->choices,
        .layout = team->layout,
        .rank = team->rank,
        .geometry = geometry,
        .element_bytes = hvd_dtype_bytes(dtype),
        .partial_bytes = hvd_partial_bytes(dtype),
        .blocks = run->blocks,
        .send = run->send,
    };
}

/* Finds memory for a result of `rows` rows: the caller's output, or newly allocated. */
static int allocate_result(struct hvd_entry *entry, int64_t rows, char **result)
{
    size_t bytes = (size_t)(rows * hvd_entry_row_bytes(entry));
    int status;

    entry->result_rows = rows;
    *result = hvd_entry_find_room(entry);
    if (*result != NULL || bytes == 0) {
        return 0;
    }
    if (entry->allocate != NULL) {
        status = entry->allocate(entry, bytes);
    } else {
        entry->result = hvd_run_memory(bytes);
        status = entry->result != NULL ? 0 : HVD_ERR_NOMEM;
    }
    *result = entry->result;
    return status;
}

/* Allows a sum to access tensors in place only if it has one tensor, or one array of
 * converted elements, and no prescale. */
static void offer_whole(const struct hvd_run *run, struct hvd_schedule_query *query)
{
    bool is_single = run->entry_count == 1 || run->convert != NULL;
    bool is_plain = is_single && run->prescale == 1.0;

    query->geometry.has_single_copy = query->geometry.has_single_copy && is_plain;
}

/* Gives a joined rank arrays of zeros as input and output: it has no tensors, but still
 * has to reduce its share for the other ranks. */
static int zeros(struct hvd_run *run)
{
    if (!run->entries[0]->is_zeros || run->convert != NULL) {
        return 0;
    }
    run->zeros = calloc((size_t)run->input.begin[1], 1);
    run->input.data[0] = run->zeros;
    run->output.data[0] = run->zeros;
    return run->zeros != NULL ? 0 : HVD_ERR_NOMEM;
}

/* Sets the tensors of the batch as consecutive segments. Returns their bytes. */
static int64_t set_tensors(struct hvd_run *run)
{
    struct hvd_segments *input = &run->input, *output = &run->output;
    int64_t end = 0;

    if (run->convert != NULL) {
        hvd_run_convert_tensors(run->convert, &input, &output);
    }
    for (int i = 0; i < run->entry_count; i++) {
        struct hvd_entry *entry = run->entries[i];

        end += hvd_descriptor_bytes(&entry->descriptor);
        input->data[i] = entry->is_zeros ? NULL : (char *)entry->input;
        output->data[i] = entry->is_zeros ? NULL : entry->output;
        input->begin[i + 1] = end;
        output->begin[i + 1] = end;
    }
    return end;
}

static int prepare_allreduce(struct hvd_run *run, struct hvd_error *err)
{
    struct hvd_schedule_query query;
    int status = 0;

    if (hvd_segments_init(&run->input, run->entry_count) != 0 ||
        hvd_segments_init(&run->output, run->entry_count) != 0) {
        return HVD_ERR_NOMEM;
    }
    run->bytes = set_tensors(run);
    if (run->entries[0]->descriptor.wire != 0 && hvd_run_convert_prepare(run) != 0) {
        return HVD_ERR_NOMEM;
    }
    query = query_of(run, HVD_COLL_ALLREDUCE);
    query.count = run->input.begin[run->input.count] / (int64_t)query.element_bytes;
    if (query.layout->nodes == 1) {
        offer_whole(run, &query);
    }
    status = hvd_run_schedule(run, &query, err);
    if (status == 0 && run->facts->is_offered) {
        status = zeros(run);
    }
    return status;
}

static int prepare_reducescatter(struct hvd_run *run, struct hvd_error *err)
{
    struct hvd_schedule_query query = query_of(run, HVD_COLL_REDUCESCATTER);
    struct hvd_entry *entry = run->entries[0];
    struct hvd_share own =
        hvd_entry_share(entry, run->team->layout->size, run->team->rank);
    int64_t row_count = hvd_entry_row_bytes(entry) / (int64_t)query.element_bytes;

    query.count = entry->descriptor.shape[0] * row_count;
    query.part_begin = own.begin * row_count;
    query.part_count = own.rows * row_count;
    offer_whole(run, &query);
    if (hvd_segments_init_one(&run->input, (void *)entry->input,
                              hvd_descriptor_bytes(&entry->descriptor)) != 0 ||
        hvd_segments_init_one(&run->output, entry->output,
                              query.part_count * (int64_t)query.element_bytes) != 0) {
        return HVD_ERR_NOMEM;
    }
    return hvd_run_schedule(run, &query, err);
}

/* Finds the member that is the root. */
static int find_root(const struct hvd_run *run, int *root, struct hvd_error *err)
{
    const struct hvd_entry *entry = run->entries[0];
    char operation[HVD_OPERATION_BYTES];

    *root = hvd_team_member(run->team, entry->descriptor.root);
    return *root >= 0
               ? 0
               : hvd_fail(err, HVD_ERR_ARG,
                          "%s: its root, rank %d, is not in the process set",
                          hvd_entry_operation(entry, operation), entry->descriptor.root);
}

/* Prepares a reduce as a reducescatter in which all elements are the root's part. */
static int prepare_reduce(struct hvd_run *run, struct hvd_error *err)
{
    struct hvd_schedule_query query = query_of(run, HVD_COLL_REDUCESCATTER);
    struct hvd_entry *entry = run->entries[0];
    bool is_root;

    if (find_root(run, &query.root, err) != 0) {
        return HVD_ERR_ARG;
    }
    is_root = query.root == run->team->rank;
    query.is_for_root = true;
    query.count = hvd_entry_count(entry);
    query.part_begin = run->team->rank > query.root ? query.count : 0;
    query.part_count = is_root ? query.count : 0;
    offer_whole(run, &query);
    if (hvd_segments_init_one(&run->input, (void *)entry->input,
                              hvd_descriptor_bytes(&entry->descriptor)) != 0 ||
        hvd_segments_init_one(&run->output, is_root ? entry->output : NULL,
                              is_root ? hvd_descriptor_bytes(&entry->descriptor) : 0) !=
            0) {
        return HVD_ERR_NOMEM;
    }
    return hvd_run_schedule(run, &query, err);
}

static int prepare_broadcast(struct hvd_run *run, struct hvd_error *err)
{
    struct hvd_schedule_query query = query_of(run, HVD_COLL_BROADCAST);
    struct hvd_entry *entry = run->entries[0];

    query.bytes = hvd_descriptor_bytes(&entry->descriptor);
    if (find_root(run, &query.root, err) != 0) {
        return HVD_ERR_ARG;
    }
    if (hvd_segments_init_one(&run->input, (void *)entry->input, query.bytes) != 0 ||
        hvd_segments_init_one(&run->output, entry->output, query.bytes) != 0) {
        return HVD_ERR_NOMEM;
    }
    return hvd_run_schedule(run, &query, err);
}

static int prepare_allgather(struct hvd_run *run, const int64_t *rows,
                             struct hvd_error *err)
{
    struct hvd_schedule_query query;
    struct hvd_entry *entry = run->entries[0];
    int64_t row_bytes = hvd_entry_row_bytes(entry);
    int size = run->team->layout->size;
    int64_t total = 0;
    char *result;

    run->blocks = calloc((size_t)size + 1, sizeof(run->blocks[0]));
    if (run->blocks == NULL) {
        return HVD_ERR_NOMEM;
    }
    for (int i = 0; i < size; i++) {
        total += rows[i];
        run->blocks[i + 1] = total * row_bytes;
    }
    if (allocate_result(entry, total, &result) != 0 ||
        hvd_segments_init_one(&run->input, (void *)entry->input,
                              hvd_descriptor_bytes(&entry->descriptor)) != 0 ||
        hvd_segments_init_one(&run->output, result, run->blocks[size]) != 0) {
        return HVD_ERR_NOMEM;
    }
    query = query_of(run, HVD_COLL_ALLGATHER);
    return hvd_run_schedule(run, &query, err);
}

/* Fills [size + 1] offsets from row counts. */
static void fill_offsets(const int64_t *rows, int size, int64_t row_bytes,
                         int64_t *offsets)
{
    offsets[0] = 0;
    for (int i = 0; i < size; i++) {
        offsets[i + 1] = offsets[i] + rows[i] * row_bytes;
    }
}

static int prepare_alltoall(struct hvd_run *run, struct hvd_error *err)
{
    struct hvd_schedule_query query;
    struct hvd_entry *entry = run->entries[0];
    size_t size = (size_t)run->team->layout->size;
    const int64_t count_bytes = sizeof(int64_t);

    run->blocks = calloc(size + 1, sizeof(run->blocks[0]));
    run->send = calloc(size + 1, sizeof(run->send[0]));
    run->rows_out = calloc(size, sizeof(run->rows_out[0]));
    run->rows_in = calloc(size, sizeof(run->rows_in[0]));
    entry->received = calloc(size, sizeof(entry->received[0]));
    if (run->blocks == NULL || run->send == NULL || run->rows_out == NULL ||
        run->rows_in == NULL || entry->received == NULL ||
        hvd_segments_init_one(&run->input, run->rows_out, (int64_t)size * count_bytes) !=
            0 ||
        hvd_segments_init_one(&run->output, run->rows_in, (int64_t)size * count_bytes) !=
            0) {
        return HVD_ERR_NOMEM;
    }
    for (size_t i = 0; i < size; i++) {
        run->rows_out[i] = entry->splits[i];
        run->blocks[i + 1] = run->send[i + 1] = (int64_t)(i + 1) * count_bytes;
    }
    run->is_counting = true;
    query = query_of(run, HVD_COLL_ALLTOALL);
    query.max_block = count_bytes;
    return hvd_run_schedule(run, &query, err);
}

static int prepare_alltoall_data(struct hvd_run *run)
{
    struct hvd_schedule_query query;
    struct hvd_entry *entry = run->entries[0];
    int size = run->team->layout->size;
    int64_t row_bytes = hvd_entry_row_bytes(entry);
    int64_t rows = 0;
    char *result;

    run->is_counting = false;
    for (int i = 0; i < size; i++) {
        if (run->rows_in[i] < 0 || run->rows_in[i] > run->max_block) {
            hvd_log(HVD_LOG_ERROR,
                    "alltoall '%s': rank %d sends %lld rows; at most %lld were announced",
                    entry->descriptor.name, run->team->ranks[i],
                    (long long)run->rows_in[i], (long long)run->max_block);
            return HVD_ERR_ARG;
        }
        entry->received[i] = (int32_t)run->rows_in[i];
        rows += run->rows_in[i];
    }
    fill_offsets(run->rows_out, size, row_bytes, run->send);
    fill_offsets(run->rows_in, size, row_bytes, run->blocks);
    hvd_segments_finish(&run->input);
    hvd_segments_finish(&run->output);
    if (allocate_result(entry, rows, &result) != 0 ||
        hvd_segments_init_one(&run->input, (void *)entry->input, run->send[size]) != 0 ||
        hvd_segments_init_one(&run->output, result, run->blocks[size]) != 0) {
        return HVD_ERR_NOMEM;
    }
    query = query_of(run, HVD_COLL_ALLTOALL);
    query.max_block = run->max_block * row_bytes;
    return hvd_run_schedule(run, &query, NULL);
}

/* --- gather and scatter: an alltoall in which only the root's blocks are not empty
 * --- */

/* Allocates the bounds of blocks, which are all empty. */
static int make_bounds(struct hvd_run *run)
{
    size_t size = (size_t)run->team->layout->size;

    run->blocks = calloc(size + 1, sizeof(run->blocks[0]));
    run->send = calloc(size + 1, sizeof(run->send[0]));
    return run->blocks != NULL && run->send != NULL ? 0 : HVD_ERR_NOMEM;
}

/* Makes the block of a member `bytes` longer. */
static void set_block(const struct hvd_run *run, int64_t *bounds, int member,
                      int64_t bytes)
{
    for (int i = member + 1; i <= run->team->layout->size; i++) {
        bounds[i] += bytes;
    }
}

static int schedule_blocks(struct hvd_run *run, void *input, void *output,
                           int64_t max_block, struct hvd_error *err)
{
    struct hvd_schedule_query query = query_of(run, HVD_COLL_ALLTOALL);
    int size = run->team->layout->size;

    query.max_block = max_block;
    if (hvd_segments_init_one(&run->input, input, run->send[size]) != 0 ||
        hvd_segments_init_one(&run->output, output, run->blocks[size]) != 0) {
        return HVD_ERR_NOMEM;
    }
    return hvd_run_schedule(run, &query, err);
}

static int prepare_gather(struct hvd_run *run, const int64_t *rows, struct hvd_error *err)
{
    struct hvd_entry *entry = run->entries[0];
    int64_t row_bytes = hvd_entry_row_bytes(entry), total = 0, most = 0;
    char *result = NULL;
    int root, status = find_root(run, &root, err);

    if (status != 0 || make_bounds(run) != 0) {
        return status != 0 ? status : HVD_ERR_NOMEM;
    }
    set_block(run, run->send, root, hvd_descriptor_bytes(&entry->descriptor));
    for (int i = 0; i < run->team->layout->size; i++) {
        most = rows[i] > most ? rows[i] : most;
        total += rows[i];
        if (root == run->team->rank) {
            set_block(run, run->blocks, i, rows[i] * row_bytes);
        }
    }
    if (root == run->team->rank && allocate_result(entry, total, &result) != 0) {
        return HVD_ERR_NOMEM;
    }
    return schedule_blocks(run, (void *)entry->input, result, most * row_bytes, err);
}

static int prepare_scatter(struct hvd_run *run, struct hvd_error *err)
{
    struct hvd_entry *entry = run->entries[0];
    int64_t row_bytes = hvd_entry_row_bytes(entry);
    int size = run->team->layout->size, rank = run->team->rank;
    int root, status = find_root(run, &root, err);

    if (status != 0 || make_bounds(run) != 0) {
        return status != 0 ? status : HVD_ERR_NOMEM;
    }
    set_block(run, run->blocks, root,
              hvd_entry_share(entry, size, rank).rows * row_bytes);
    for (int i = 0; i < size && root == rank; i++) {
        set_block(run, run->send, i, hvd_entry_share(entry, size, i).rows * row_bytes);
    }
    /* Rank 0 has the largest block. */
    return schedule_blocks(run, (void *)entry->input, entry->output,
                           hvd_entry_share(entry, size, 0).rows * row_bytes, err);
}

static int prepare_first(struct hvd_run *run, const int64_t *rows, struct hvd_error *err)
{
    switch (run->kind) {
    case HVD_KIND_ALLREDUCE:
        return prepare_allreduce(run, err);
    case HVD_KIND_ADASUM:
        return hvd_run_adasum_prepare(run, err);
    case HVD_KIND_REDUCESCATTER:
        return prepare_reducescatter(run, err);
    case HVD_KIND_REDUCE:
        return prepare_reduce(run, err);
    case HVD_KIND_BROADCAST:
        return prepare_broadcast(run, err);
    case HVD_KIND_GATHER:
        return prepare_gather(run, rows, err);
    case HVD_KIND_SCATTER:
        return prepare_scatter(run, err);
    case HVD_KIND_ALLGATHER:
        return prepare_allgather(run, rows, err);
    case HVD_KIND_ALLTOALL:
        return prepare_alltoall(run, err);
    default:
        return 0; /* a barrier ends when it is agreed */
    }
}

/* Sets up the reduction. 16-bit floats are prescaled after conversion to float, so that
 * they are rounded only at the end. */
static void set_reduction(struct hvd_run *run)
{
    const struct hvd_descriptor *descriptor = &run->entries[0]->descriptor;
    bool is_widened =
        hvd_partial_bytes(descriptor->dtype) > hvd_dtype_bytes(descriptor->dtype);
    bool reduces = run->kind == HVD_KIND_ALLREDUCE ||
                   run->kind == HVD_KIND_REDUCESCATTER || run->kind == HVD_KIND_REDUCE;

    run->prescale = reduces && !is_widened ? descriptor->prescale : 1.0;
    run->reduction = hvd_reduction_of(descriptor->dtype, descriptor->op);
    run->reduction.prescale = reduces && is_widened ? descriptor->prescale : 1.0;
    run->reduction.postscale = descriptor->postscale;
    if (reduces && descriptor->op == HVD_AVERAGE) {
        run->reduction.divisor = (uint32_t)run->team->layout->size;
    }
}

int hvd_run_create(struct hvd_team *team, const struct hvd_batch_header *header,
                   struct hvd_entry *const *entries, const int64_t *rows,
                   struct hvd_run **out, struct hvd_error *err)
{
    const struct hvd_descriptor *first = &entries[0]->descriptor;
    struct hvd_run *run = calloc(1, sizeof(*run));
    size_t count = (size_t)header->count;
    int sources = team->layout->nodes;
    int status = HVD_ERR_NOMEM;

    if (run != NULL) {
        sources = team->local_size > sources ? team->local_size : sources;
        run->team = team;
        run->kind = header->kind;
        run->max_block = header->max_block;
        run->entry_count = (int)count;
        run->entries = calloc(count, sizeof(run->entries[0]));
        run->sources = calloc((size_t)sources, sizeof(run->sources[0]));
    }
    if (run != NULL && run->entries != NULL && run->sources != NULL) {
        memcpy(run->entries, entries, count * sizeof(run->entries[0]));
        run->terms = (struct hvd_run_terms){
            .dtype = first->dtype,
            .wire = first->wire,
            .op = first->op,
            .prescale = first->prescale,
            .postscale = first->postscale,
        };
        set_reduction(run);
        status = prepare_first(run, rows, err);
        run->is_done = run->schedule == NULL && !run->is_computing;
    }
    if (status == HVD_ERR_NOMEM) {
        hvd_fail(err, status, "no memory for tensor %s", first->name);
    }
    if (status != 0) {
        hvd_run_destroy(run);
        return status;
    }
    *out = run;
    return 0;
}

/* --- progress --- */

static int compute_run(struct hvd_run *run, int64_t *work, bool *moved)
{
    return run->convert != NULL ? hvd_run_convert_compute(run, work, moved)
                                : hvd_run_adasum_compute(run, work, moved);
}

/* Prepares the next schedule after one has ended, or sets is_computing; sets is_done if
 * nothing is left. */
static int next_schedule(struct hvd_run *run)
{
    int status;

    run->tick = 0;
    run->step = 0;
    run->step_count = 0;
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
    status = run->adasum != NULL ? hvd_run_adasum_next(run) : prepare_alltoall_data(run);
    run->is_done = run->schedule == NULL && !run->is_computing;
    return status;
}

int hvd_run_progress(struct hvd_run *run, int64_t *work, bool *moved)
{
    int status = 0;

    while (status == 0 && !run->is_done) {
        status = run->is_computing ? compute_run(run, work, moved)
                                   : hvd_run_steps(run, work, moved);
        if (status == 0) {
            status = next_schedule(run);
        }
    }
    if (run->team->local_size > 1) { /* else there are no sleeping ranks */
        hvd_shm_region_ring(run->team->region);
    }
    return status;
}

/* --- the next batch --- */

struct hvd_run *hvd_run_retire(struct hvd_run *run)
{
    bool is_small = run->zeros == NULL &&
                    (run->convert == NULL || hvd_run_convert_is_small(run->convert));

    if (run->kind == HVD_KIND_ALLREDUCE && is_small) {
        return run;
    }
    hvd_run_destroy(run);
    return NULL;
}

/* Whether a batch has the same number of tensors as the run's last batch, and reduces
 * them in the same way. */
static bool is_alike(const struct hvd_run *run, const struct hvd_batch_header *header,
                     const struct hvd_entry *first)
{
    const struct hvd_descriptor *next = &first->descriptor;
    const struct hvd_run_terms *last = &run->terms;

    return header->kind == run->kind && header->count == run->entry_count &&
           !first->is_zeros && next->dtype == last->dtype && next->wire == last->wire &&
           next->op == last->op && next->prescale == last->prescale &&
           next->postscale == last->postscale;
}

struct hvd_run *hvd_run_restart(struct hvd_run *run,
                                const struct hvd_batch_header *header,
                                struct hvd_entry *const *entries)
{
    bool fits = is_alike(run, header, entries[0]);

    if (fits) {
        memcpy(run->entries, entries, (size_t)run->entry_count * sizeof(run->entries[0]));
        fits = set_tensors(run) == run->bytes;
    }
    if (!fits) {
        hvd_run_destroy(run);
        return NULL;
    }
    hvd_run_again(run);
    return run;
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

/* --- the end --- */

void hvd_run_forget(struct hvd_run *run)
{
    if (run->convert != NULL) {
        hvd_run_convert_forget(run->convert);
        return;
    }
    hvd_segments_forget(&run->input);
    hvd_segments_forget(&run->output);
}

void hvd_run_cancel(struct hvd_run *run, struct hvd_entry *const *entries)
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
    if (run->adasum != NULL) {
        hvd_run_adasum_destroy(run->adasum);
    }
    if (run->convert != NULL) {
        hvd_run_convert_destroy(run->convert);
    }
    free(run->zeros);
    free(run->blocks);
    free(run->send);
    free(run->rows_out);
    free(run->rows_in);
    free(run->sources);
    free(run->entries);
    free(run);
}
