/* SPDX-License-Identifier: Apache-2.0 */
/* From requests to batches: entries are proposed up the tree, rank 0 finds out which tensors
 * all ranks have, and its batches come down in one order for all. */
#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "collectives/engine_state.h"

static const char duplicate_text[] = "Requested to allreduce, allgather, or broadcast a "
                                     "tensor with the same name as another "
                                     "tensor that is currently being processed.  If you "
                                     "want to request another tensor, use a "
                                     "different tensor name.";

static const char strange_batch_text[] = "rank 0 named a tensor that this rank does not "
                                         "have, or memory ran out: do all nodes have "
                                         "the same version of hvd?";

static int compare_entries(const void *a, const void *b)
{
    const struct hvd_entry *one = a, *other = b;

    if (one->proposal.set != other->proposal.set) {
        return one->proposal.set < other->proposal.set ? -1 : 1;
    }
    return strcmp(one->proposal.name, other->proposal.name);
}

static void unregister_first(struct hvd_engine *engine, struct hvd_request *request,
                             int count)
{
    for (int i = 0; i < count; i++) {
        tdelete(&request->entries[i], &engine->in_flight, compare_entries);
    }
}

int hvd_agree_register(struct hvd_engine *engine, struct hvd_request *request,
                       struct hvd_error *err)
{
    for (int i = 0; i < request->count; i++) {
        struct hvd_entry *entry = &request->entries[i];
        struct hvd_entry **found = tsearch(entry, &engine->in_flight, compare_entries);

        if (found == NULL || *found != entry) {
            unregister_first(engine, request, i);
            return found == NULL ? hvd_fail(err, HVD_ERR_NOMEM, "no memory for tensor %s",
                                            entry->proposal.name)
                                 : hvd_fail(err, HVD_ERR_ARG, "%s", duplicate_text);
        }
    }
    for (int i = 0; i < request->count; i++) {
        *engine->fresh_end = &request->entries[i];
        engine->fresh_end = &request->entries[i].next;
    }
    return 0;
}

static struct hvd_entry *take_fresh(struct hvd_engine *engine)
{
    struct hvd_entry *first;

    pthread_mutex_lock(&engine->mail);
    first = engine->fresh;
    engine->fresh = NULL;
    engine->fresh_end = &engine->fresh;
    pthread_mutex_unlock(&engine->mail);
    return first;
}

static int add_proposal(struct hvd_engine *engine, const struct hvd_proposal *proposal)
{
    struct hvd_error error = {0};
    int status = hvd_coordinator_add(engine->coordinator, proposal, &error);

    if (status != 0) {
        hvd_engine_fail(engine, proposal->rank, status, error.text);
    }
    return status;
}

bool hvd_agree_propose(struct hvd_engine *engine)
{
    struct hvd_entry *entry = take_fresh(engine);
    struct hvd_writer writer = {0};

    if (entry == NULL) {
        return false;
    }
    for (; entry != NULL; entry = entry->next) {
        entry->proposal.rank = engine->boot->rank;
        if (engine->coordinator == NULL) {
            hvd_put_proposal(&writer, &entry->proposal);
        } else if (add_proposal(engine, &entry->proposal) != 0) {
            return true; /* failed: the entries have ended and may be gone */
        }
    }
    if (writer.failed ||
        (writer.bytes > 0 && hvd_control_send_up(engine->control, HVD_MESSAGE_PROPOSALS,
                                                 writer.data, writer.bytes) != 0)) {
        hvd_engine_fail(engine, engine->boot->rank, HVD_ERR_NOMEM,
                        "no memory for messages");
    }
    hvd_writer_finish(&writer);
    return true;
}

void hvd_agree_proposals(struct hvd_engine *engine, const void *payload, size_t bytes)
{
    struct hvd_reader reader = {.data = payload, .bytes = bytes};
    struct hvd_proposal proposal;

    if (engine->coordinator == NULL) {
        if (hvd_control_send_up(engine->control, HVD_MESSAGE_PROPOSALS, payload, bytes) !=
            0) {
            hvd_engine_fail(engine, engine->boot->rank, HVD_ERR_NOMEM,
                            "no memory for messages");
        }
        return;
    }
    while (reader.bytes > 0) {
        if (hvd_take_proposal(&reader, &proposal) != 0) {
            hvd_engine_fail(
                engine, engine->boot->rank, HVD_ERR_NET,
                "a message of another rank cannot be read: do all nodes have the "
                "same version of hvd?");
            return;
        }
        if (add_proposal(engine, &proposal) != 0) {
            return;
        }
    }
}

bool hvd_agree_answer(struct hvd_engine *engine)
{
    struct hvd_writer writer = {0};
    int batches;

    if (engine->coordinator == NULL || engine->phase != HVD_PHASE_RUNNING) {
        return false;
    }
    batches = hvd_coordinator_answer(engine->coordinator, &writer);
    if (batches > 0 &&
        (writer.failed || hvd_control_send_down(engine->control, HVD_MESSAGE_BATCHES,
                                                writer.data, writer.bytes) != 0)) {
        hvd_engine_fail(engine, engine->boot->rank, HVD_ERR_NOMEM,
                        "no memory for messages");
    } else if (batches > 0) {
        hvd_agree_batches(engine, writer.data, writer.bytes);
    }
    hvd_writer_finish(&writer);
    return batches > 0;
}

/* Takes the entry of this name out of the in-flight tree; NULL when there is none. */
static struct hvd_entry *claim_entry(struct hvd_engine *engine, int set, const char *name)
{
    struct hvd_entry key = {.proposal = {.set = set, .name = name}};
    struct hvd_entry *entry = NULL;
    struct hvd_entry **found;

    pthread_mutex_lock(&engine->mail);
    found = tfind(&key, &engine->in_flight, compare_entries);
    if (found != NULL) {
        entry = *found;
        tdelete(entry, &engine->in_flight, compare_entries);
    }
    pthread_mutex_unlock(&engine->mail);
    return entry;
}

static int take_batch(struct hvd_engine *engine, struct hvd_reader *reader)
{
    struct hvd_batch_header header;
    struct hvd_batch_tensor tensor;
    struct hvd_batch *batch;
    int64_t found = 0;

    if (hvd_take_batch_header(reader, &header) != 0 ||
        (batch = hvd_batch_create(&header)) == NULL) {
        return HVD_ERR_ARG;
    }
    while (found < header.count && hvd_take_batch_tensor(reader, &header, &tensor) == 0) {
        struct hvd_entry *entry = claim_entry(engine, header.set, tensor.name);

        if (entry == NULL) {
            break;
        }
        batch->entries[found++] = entry;
        memcpy(batch->rows, tensor.rows, (size_t)header.row_count * sizeof(int64_t));
    }
    if (found < header.count || header.status != 0) {
        bool is_strange = found < header.count;
        int status = is_strange ? HVD_ERR_NET : header.status;

        for (int64_t i = 0; i < found; i++) {
            hvd_engine_end_entry(engine, batch->entries[i], status,
                                 is_strange ? strange_batch_text : header.text);
        }
        hvd_batch_destroy(batch);
        return is_strange ? HVD_ERR_ARG : 0;
    }
    hvd_teams_submit(engine->teams, batch);
    return 0;
}

void hvd_agree_batches(struct hvd_engine *engine, const void *payload, size_t bytes)
{
    struct hvd_reader reader = {.data = payload, .bytes = bytes};

    while (reader.bytes > 0) {
        if (take_batch(engine, &reader) != 0) {
            hvd_engine_fail(
                engine, engine->boot->rank, HVD_ERR_NET,
                "rank 0 named a tensor that this rank does not have, or memory "
                "ran out: do all nodes have the same version of hvd?");
            return;
        }
    }
}

void hvd_agree_drop(struct hvd_engine *engine, int status, const char *text)
{
    for (;;) {
        struct hvd_entry *entry = NULL;

        pthread_mutex_lock(&engine->mail);
        engine->fresh = NULL;
        engine->fresh_end = &engine->fresh;
        if (engine->in_flight != NULL) {
            entry = *(struct hvd_entry **)engine->in_flight;
            tdelete(entry, &engine->in_flight, compare_entries);
        }
        pthread_mutex_unlock(&engine->mail);
        if (entry == NULL) {
            return;
        }
        hvd_engine_end_entry(engine, entry, status, text);
    }
}
