/* SPDX-License-Identifier: Apache-2.0 */
/* Checks the promises that every simulated job must keep. */
#include "tests/collectives/agreement_sim/agreement_sim_check.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collectives/agreement/agreement_state.h"
#include "tests/collectives/agreement_sim/agreement_sim_internal.h"

/* How often a rank has submitted a tensor of this name since its last join. */
struct use {
    struct hvd_key key;
    int joins;
    int64_t count;
    bool is_under_way;
};

/* How one use of a name ended on the first rank on which it ended. */
struct outcome {
    struct hvd_key key;
    int status;
    int64_t value;
    char *text;
};

/* A batch, as described by the first rank that started it. */
struct sim_seen_batch {
    char *text;
    /* [count]: which use of its name each tensor is; 0: no rank has started it with its
     * own tensor yet */
    int64_t *occurrences;
    int64_t count;
    int64_t max_block;
    int own_ends; /* ranks that got a result */
    int void_ends; /* ranks that took part with zeros */
};

struct sim_check {
    struct hvd_hash_table *uses; /* [size]: a table for each rank */
    struct hvd_hash_table outcomes;
    int size;
};

struct sim_check *sim_check_create(struct sim *sim)
{
    struct sim_check *check = calloc(1, sizeof(*check));

    check->size = sim->layout.size;
    check->uses = calloc((size_t)check->size, sizeof(check->uses[0]));
    return check;
}

void sim_check_destroy(struct sim_check *check)
{
    size_t cursor = 0;
    struct outcome *outcome;

    if (check == NULL) {
        return;
    }
    for (int i = 0; i < check->size; i++) {
        struct use *use;

        cursor = 0;
        while ((use = hvd_hash_table_next(&check->uses[i], &cursor)) != NULL) {
            free((char *)use->key.name);
            free(use);
        }
        hvd_hash_table_finish(&check->uses[i]);
    }
    cursor = 0;
    while ((outcome = hvd_hash_table_next(&check->outcomes, &cursor)) != NULL) {
        free((char *)outcome->key.name);
        free(outcome->text);
        free(outcome);
    }
    hvd_hash_table_finish(&check->outcomes);
    free(check->uses);
    free(check);
}

void sim_check_forget(struct sim_round *round)
{
    if (round->seen != NULL) {
        free(round->seen->text);
        free(round->seen->occurrences);
        free(round->seen);
    }
}

/* --- occurrences --- */

static bool use_has_key(const void *item, const void *key)
{
    const struct use *use = item;

    return hvd_key_equal(&use->key, key);
}

/* Whether the tensor stands for the removal of a process set that its members have
 * created. */
static bool removes_created(const struct hvd_descriptor *tensor)
{
    return tensor->kind == HVD_KIND_SET_REMOVE && tensor->set != HVD_SET_GLOBAL;
}

/* Writes the name of a tensor. If it stands for the removal of a set that its members
 * have created, adds the number of the set. */
static void write_name(const struct hvd_descriptor *tensor, char *name, size_t bytes)
{
    if (removes_created(tensor)) {
        snprintf(name, bytes, "%.100s of %d", tensor->name, tensor->set);
    } else {
        snprintf(name, bytes, "%.200s", tensor->name);
    }
}

/* Returns this rank's count of the uses of a name in a process set. The key has the
 * number of the set's team, because numbers of sets are used again. */
static struct use *find_use(const struct sim_rank *rank,
                            const struct hvd_descriptor *tensor)
{
    struct hvd_hash_table *uses = &rank->sim->check->uses[rank->rank];
    bool is_global = tensor->set == HVD_SET_GLOBAL || tensor->kind == HVD_KIND_SET_REMOVE;
    char name[256];
    struct hvd_key key;
    struct use *use;

    write_name(tensor, name, sizeof(name));
    key = hvd_key_make(is_global ? 0 : rank->teams[tensor->set], name);
    use = hvd_hash_table_find(uses, key.hash, use_has_key, &key);
    if (use == NULL) {
        use = calloc(1, sizeof(*use));
        use->key = key;
        use->key.name = strdup(name);
        hvd_hash_table_add(uses, key.hash, use);
    }
    return use;
}

static int64_t occurrence(const struct use *use)
{
    return use->joins * (int64_t)1000000 + use->count;
}

void sim_check_submit(struct sim_rank *rank, const struct hvd_entry *entry)
{
    struct use *use;

    use = find_use(rank, &entry->descriptor);
    if (use->is_under_way) {
        sim_fault(rank->sim, "the test submits %s twice", entry->descriptor.name);
    }
    if (entry->descriptor.set == HVD_SET_GLOBAL && use->joins != rank->joins) {
        use->joins = rank->joins;
        use->count = 0;
    }
    use->count++;
    use->is_under_way = true;
}

/* --- ends --- */

static bool outcome_has_key(const void *item, const void *key)
{
    const struct outcome *outcome = item;

    return hvd_key_equal(&outcome->key, key);
}

static void compare(struct sim_rank *rank, const struct use *use,
                    const struct outcome *mine)
{
    struct hvd_hash_table *outcomes = &rank->sim->check->outcomes;
    char name[256];
    struct hvd_key key;
    struct outcome *outcome;

    snprintf(name, sizeof(name), "%.200s#%" PRId64, use->key.name, occurrence(use));
    key = hvd_key_make(use->key.set, name);
    outcome = hvd_hash_table_find(outcomes, key.hash, outcome_has_key, &key);
    if (outcome == NULL) {
        outcome = malloc(sizeof(*outcome));
        *outcome = *mine;
        outcome->key = key;
        outcome->key.name = strdup(name);
        outcome->text = strdup(mine->text);
        hvd_hash_table_add(outcomes, key.hash, outcome);
    } else if (outcome->status != mine->status || outcome->value != mine->value ||
               strcmp(outcome->text, mine->text) != 0) {
        sim_fault(rank->sim,
                  "%s: rank %d has %d %" PRId64 " %s, another %d %" PRId64 " %s", name,
                  rank->rank, mine->status, mine->value, mine->text, outcome->status,
                  outcome->value, outcome->text);
    }
}

static bool is_in_batch(const struct sim_rank *rank, const struct hvd_entry *entry)
{
    for (const struct sim_batch *at = rank->batches; at != NULL; at = at->next) {
        for (int64_t i = 0; i < at->batch->header.count; i++) {
            if (at->batch->entries[i] == entry) {
                return true;
            }
        }
    }
    return false;
}

void sim_check_end(struct sim_rank *rank, const struct hvd_entry *entry, int status,
                   const char *text)
{
    struct outcome mine = {.status = status, .text = (char *)text};
    struct use *use;

    use = find_use(rank, &entry->descriptor);
    if (!use->is_under_way) {
        sim_fault(rank->sim, "rank %d: %s ends twice", rank->rank,
                  entry->descriptor.name);
    }
    if (is_in_batch(rank, entry)) {
        sim_fault(rank->sim, "rank %d: %s ends, but is to run", rank->rank,
                  entry->descriptor.name);
    }
    use->is_under_way = false;
    if (strstr(text, "after it had joined") != NULL) {
        /* only this rank has refused the tensor: the other ranks do not count this use */
        use->count--;
        return;
    }
    if (entry->descriptor.kind == HVD_KIND_SET_CREATE ||
        removes_created(&entry->descriptor)) {
        return; /* another set may have had this name or number on other ranks */
    }
    mine.value = entry->request->value;
    compare(rank, use, &mine);
}

/* --- batches --- */

static char *describe(const struct hvd_batch *batch)
{
    const struct hvd_batch_header *header = &batch->header;
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);

    fprintf(out, "%s", hvd_kind_name(header->kind));
    for (int64_t i = 0; i < header->count; i++) {
        fprintf(out, " %s", batch->entries[i]->descriptor.name);
        if (header->kind != HVD_KIND_ALLGATHER && header->kind != HVD_KIND_ALLTOALL) {
            fprintf(out, ":%" PRId64 ":%d", hvd_entry_count(batch->entries[i]),
                    batch->entries[i]->descriptor.wire);
        }
    }
    for (int64_t i = 0; i < header->row_count; i++) {
        fprintf(out, " %" PRId64, batch->rows[i]);
    }
    fprintf(out, " %" PRId64, header->max_block);
    fclose(out);
    return text;
}

static struct sim_seen_batch *see(struct sim_rank *rank, int team, int64_t number,
                                  const struct hvd_batch *batch)
{
    struct sim_round *round = &rank->sim->teams[team].rounds[number];
    char *text = describe(batch);

    if (round->seen == NULL) {
        round->seen = calloc(1, sizeof(*round->seen));
        round->seen->text = text;
        round->seen->count = batch->header.count;
        round->seen->occurrences = calloc((size_t)batch->header.count, sizeof(int64_t));
        return round->seen;
    }
    if (strcmp(round->seen->text, text) != 0) {
        sim_fault(rank->sim,
                  "team %d batch %" PRId64 ": rank %d has %.150s, another %.150s", team,
                  number, rank->rank, text, round->seen->text);
    }
    free(text);
    return round->seen->count == batch->header.count ? round->seen : NULL;
}

static void check_entry(struct sim_rank *rank, struct sim_seen_batch *seen, int64_t index,
                        const struct hvd_batch *batch)
{
    const struct hvd_descriptor *tensor = &batch->entries[index]->descriptor;
    const struct hvd_set *set = hvd_sets_find(&rank->sets, tensor->set);
    int64_t mine = occurrence(find_use(rank, tensor));

    if (seen->occurrences[index] != 0 && seen->occurrences[index] != mine) {
        sim_fault(rank->sim, "rank %d runs %s#%" PRId64 ", another %" PRId64, rank->rank,
                  tensor->name, mine, seen->occurrences[index]);
    }
    seen->occurrences[index] = mine;
    if (batch->header.row_count > 0 && set != NULL && tensor->ndim > 0 &&
        batch->rows[hvd_set_index(set, rank->rank)] != tensor->shape[0]) {
        sim_fault(rank->sim, "rank %d has other rows of %s", rank->rank, tensor->name);
    }
    if (tensor->max_block > seen->max_block) {
        seen->max_block = tensor->max_block;
    }
}

static void check_alike(struct sim_rank *rank, const struct hvd_batch *batch)
{
    const struct hvd_descriptor *first = &batch->entries[0]->descriptor;

    for (int64_t i = 1; i < batch->header.count; i++) {
        const struct hvd_descriptor *other = &batch->entries[i]->descriptor;

        if (other->dtype != first->dtype || other->wire != first->wire ||
            other->op != first->op) {
            sim_fault(rank->sim, "rank %d runs %s and %s together", rank->rank,
                      first->name, other->name);
        }
    }
}

void sim_check_start(struct sim_rank *rank, int team, int64_t number,
                     const struct hvd_batch *batch)
{
    struct sim_seen_batch *seen = see(rank, team, number, batch);

    check_alike(rank, batch);
    for (int64_t i = 0; i < batch->header.count; i++) {
        if (!batch->entries[i]->is_zeros) {
            check_entry(rank, seen, i, batch);
        }
    }
}

void sim_check_finish(struct sim_rank *rank, int team, int64_t number,
                      const struct hvd_batch *batch)
{
    struct sim_seen_batch *seen = rank->sim->teams[team].rounds[number].seen;
    bool is_cancelled = batch->entries[0]->is_zeros;

    seen->void_ends += is_cancelled ? 1 : 0;
    seen->own_ends += is_cancelled ? 0 : 1;
    if (batch->number != 0 && seen->void_ends > 0 && seen->own_ends > 0) {
        sim_fault(rank->sim, "rank %d got zeros of another for %.200s", rank->rank,
                  seen->text);
    }
    if (batch->header.kind == HVD_KIND_ALLTOALL &&
        seen->max_block != batch->header.max_block) {
        sim_fault(rank->sim, "%.200s: the largest block is %" PRId64, seen->text,
                  seen->max_block);
    }
}

void sim_check_remove(struct sim_rank *rank, int team)
{
    for (int i = 0; i < rank->sim->layout.size; i++) {
        for (const struct sim_batch *at = rank->sim->ranks[i].batches; at != NULL;
             at = at->next) {
            if (at->team == team) {
                sim_fault(rank->sim, "rank %d removes a set that rank %d uses",
                          rank->rank, i);
            }
        }
    }
}

/* --- the end --- */

void sim_check_rest(struct sim *sim)
{
    for (int i = 0; i < sim->layout.size; i++) {
        struct sim_rank *rank = &sim->ranks[i];

        for (int link = 0; link <= rank->child_count; link++) {
            if (rank->inbox[link].first != NULL) {
                sim_fault(sim, "rank %d has a message left", i);
            }
        }
        if (rank->batches != NULL) {
            sim_fault(sim, "rank %d has a batch left", i);
        }
        if (rank->tensors.oldest != NULL) {
            sim_fault(sim, "rank %d has an entry left", i);
        }
        if (rank->tensors.by_name.count > rank->agreement->cache.count) {
            sim_fault(sim, "rank %d knows a name that is not in the cache", i);
        }
        if (!rank->has_left && rank->agreement->reports.ready_tensor.open.count > 0) {
            sim_fault(sim, "rank %d has a readiness record left", i);
        }
    }
}
