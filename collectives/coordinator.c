/* SPDX-License-Identifier: Apache-2.0 */
/* The root's book: which ranks have proposed which tensor, and what all ranks run next. */
#include "collectives/coordinator.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "collectives/validate.h"

/* Batches above this go where they do not hold up small ones. */
static const int64_t bulk_bytes = 4 << 20;

/* One name that some ranks have proposed. The first proposal is the one that the others are
 * compared with, so that nothing but row counts is kept per rank. */
struct pending {
    struct hvd_proposal first; /* name owned */
    int seen_count;
    unsigned char *seen; /* [size] */
    int64_t *rows; /* [size], allgather only */
    int64_t max_block;
    int failed_check; /* the lowest that failed, or HVD_VALID */
    struct hvd_error error;
    struct pending *next; /* in the list of ready ones */
};

struct hvd_coordinator {
    int size;
    int64_t fusion_threshold;
    void *by_name; /* tsearch tree of struct pending */
    struct pending *ready;
    struct pending **ready_end;
};

static int compare_pending(const void *a, const void *b)
{
    const struct pending *one = a, *other = b;

    if (one->first.set != other->first.set) {
        return one->first.set < other->first.set ? -1 : 1;
    }
    return strcmp(one->first.name, other->first.name);
}

static void pending_destroy(void *arg)
{
    struct pending *pending = arg;

    free((char *)pending->first.name);
    free(pending->seen);
    free(pending->rows);
    free(pending);
}

int hvd_coordinator_create(int size, int64_t fusion_threshold,
                           struct hvd_coordinator **out, struct hvd_error *err)
{
    struct hvd_coordinator *coordinator = calloc(1, sizeof(*coordinator));

    if (coordinator == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for the coordinator");
    }
    coordinator->size = size;
    coordinator->fusion_threshold = fusion_threshold;
    coordinator->ready_end = &coordinator->ready;
    *out = coordinator;
    return 0;
}

void hvd_coordinator_destroy(struct hvd_coordinator *coordinator)
{
    if (coordinator == NULL) {
        return;
    }
    while (coordinator->ready != NULL) {
        struct pending *pending = coordinator->ready;

        coordinator->ready = pending->next;
        pending_destroy(pending);
    }
    tdestroy(coordinator->by_name, pending_destroy);
    free(coordinator);
}

static struct pending *pending_create(const struct hvd_coordinator *coordinator,
                                      const struct hvd_proposal *proposal)
{
    struct pending *pending = calloc(1, sizeof(*pending));
    size_t size = (size_t)coordinator->size;

    if (pending == NULL) {
        return NULL;
    }
    pending->first = *proposal;
    pending->first.name = strdup(proposal->name);
    pending->seen = calloc(size, 1);
    pending->failed_check = HVD_VALID;
    if (proposal->kind == HVD_KIND_ALLGATHER) {
        pending->rows = calloc(size, sizeof(pending->rows[0]));
    }
    if (pending->first.name == NULL || pending->seen == NULL ||
        (proposal->kind == HVD_KIND_ALLGATHER && pending->rows == NULL)) {
        pending_destroy(pending);
        return NULL;
    }
    return pending;
}

/* The pending entry for this name, made if there is none; NULL without memory. */
static struct pending *pending_find(struct hvd_coordinator *coordinator,
                                    const struct hvd_proposal *proposal)
{
    struct pending key = {.first = *proposal};
    struct pending **found = tfind(&key, &coordinator->by_name, compare_pending);
    struct pending *pending;

    if (found != NULL) {
        return *found;
    }
    pending = pending_create(coordinator, proposal);
    if (pending != NULL &&
        tsearch(pending, &coordinator->by_name, compare_pending) == NULL) {
        pending_destroy(pending);
        return NULL;
    }
    return pending;
}

static void note_disagreement(struct pending *pending,
                              const struct hvd_proposal *proposal)
{
    struct hvd_error error = {0};
    int check = hvd_validate(&pending->first, proposal, &error);

    if (check < pending->failed_check) {
        pending->failed_check = check;
        pending->error = error;
    }
}

int hvd_coordinator_add(struct hvd_coordinator *coordinator,
                        const struct hvd_proposal *proposal, struct hvd_error *err)
{
    struct pending *pending;
    int rank = proposal->rank;

    if (rank < 0 || rank >= coordinator->size) {
        return hvd_fail(err, HVD_ERR_ARG, "tensor %s proposed by rank %d of %d",
                        proposal->name, rank, coordinator->size);
    }
    pending = pending_find(coordinator, proposal);
    if (pending == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for tensor %s", proposal->name);
    }
    if (pending->seen[rank]) {
        return hvd_fail(err, HVD_ERR_ARG, "rank %d proposed tensor %s twice", rank,
                        proposal->name);
    }
    note_disagreement(pending, proposal);
    pending->seen[rank] = 1;
    pending->seen_count++;
    if (pending->rows != NULL) {
        pending->rows[rank] = proposal->ndim > 0 ? proposal->shape[0] : 0;
    }
    if (proposal->max_block > pending->max_block) {
        pending->max_block = proposal->max_block;
    }
    if (pending->seen_count == coordinator->size) {
        tdelete(pending, &coordinator->by_name, compare_pending);
        *coordinator->ready_end = pending;
        coordinator->ready_end = &pending->next;
    }
    return 0;
}

static int64_t pending_bytes(const struct pending *pending)
{
    int64_t bytes = (int64_t)hvd_dtype_bytes(pending->first.dtype);

    for (int i = 0; i < pending->first.ndim; i++) {
        bytes *= pending->first.shape[i];
    }
    return bytes;
}

static bool may_travel_together(const struct pending *a, const struct pending *b)
{
    const struct hvd_proposal *one = &a->first, *other = &b->first;

    return one->kind == HVD_KIND_ALLREDUCE && other->kind == HVD_KIND_ALLREDUCE &&
           b->failed_check == HVD_VALID && one->set == other->set &&
           one->dtype == other->dtype && one->op == other->op &&
           one->device == other->device && one->prescale == other->prescale &&
           one->postscale == other->postscale;
}

/* Moves the tensors that go with lead from the ready list to lead's own list; returns how
 * many tensors the batch has. */
static int gather_batch(struct hvd_coordinator *coordinator, struct pending *lead)
{
    struct pending **end = &lead->next;
    struct pending **at = &coordinator->ready;
    int64_t bytes = pending_bytes(lead);
    int count = 1;

    *end = NULL;
    if (lead->failed_check != HVD_VALID) {
        return count;
    }
    while (*at != NULL) {
        struct pending *other = *at;
        int64_t more = pending_bytes(other);

        if (!may_travel_together(lead, other) ||
            bytes + more > coordinator->fusion_threshold) {
            at = &other->next;
            continue;
        }
        *at = other->next;
        other->next = NULL;
        *end = other;
        end = &other->next;
        bytes += more;
        count++;
    }
    return count;
}

static enum hvd_lane choose_lane(const struct pending *lead)
{
    int64_t bytes = 0;

    for (; lead != NULL; lead = lead->next) {
        bytes += pending_bytes(lead);
    }
    return bytes > bulk_bytes ? HVD_LANE_BULK : HVD_LANE_QUICK;
}

static void put_batch(const struct hvd_coordinator *coordinator, struct pending *lead,
                      int count, struct hvd_writer *writer)
{
    bool failed = lead->failed_check != HVD_VALID;
    struct hvd_batch_header header = {
        .kind = lead->first.kind,
        .set = lead->first.set,
        .lane = choose_lane(lead),
        .status = failed ? HVD_ERR_MISMATCH : 0,
        .text = failed ? lead->error.text : "",
        .max_block = lead->max_block,
        .count = count,
        .row_count = lead->rows != NULL && !failed ? coordinator->size : 0,
    };

    hvd_put_batch_header(writer, &header);
    for (struct pending *tensor = lead; tensor != NULL; tensor = tensor->next) {
        hvd_put_text(writer, tensor->first.name);
        hvd_put(writer, tensor->rows, (size_t)header.row_count * sizeof(int64_t));
    }
}

int hvd_coordinator_answer(struct hvd_coordinator *coordinator, struct hvd_writer *writer)
{
    int batches = 0;

    while (coordinator->ready != NULL) {
        struct pending *lead = coordinator->ready;
        int count;

        coordinator->ready = lead->next;
        count = gather_batch(coordinator, lead);
        put_batch(coordinator, lead, count, writer);
        while (lead != NULL) {
            struct pending *next = lead->next;

            pending_destroy(lead);
            lead = next;
        }
        batches++;
    }
    coordinator->ready_end = &coordinator->ready;
    return batches;
}
