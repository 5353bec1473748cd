/* SPDX-License-Identifier: Apache-2.0 */
/* Collects the reports of tensors from the branches of the tree. */
#include "collectives/agreement/ready_table.h"

#include <stdlib.h>
#include <string.h>

void hvd_ready_table_init(struct hvd_ready_table *table, const struct hvd_sets *sets)
{
    *table = (struct hvd_ready_table){.sets = sets};
    table->complete_end = &table->complete;
}

static void reset_tensor(struct hvd_ready_tensor *ready_tensor)
{
    if (ready_tensor->cached != NULL) {
        ready_tensor->cached->uses--;
        ready_tensor->cached = NULL;
    }
    for (int i = 0; i < ready_tensor->described; i++) {
        hvd_descriptor_free(ready_tensor->descriptions[i]);
    }
    ready_tensor->described = 0;
    ready_tensor->is_partial = false;
    ready_tensor->row_count = 0;
    ready_tensor->max_block = 0;
}

static void free_ready_tensor(struct hvd_ready_tensor *ready_tensor)
{
    reset_tensor(ready_tensor);
    free(ready_tensor->descriptions);
    free(ready_tensor->seen);
    free(ready_tensor->rows);
    free(ready_tensor);
}

static void free_list(struct hvd_ready_tensor *ready_tensor)
{
    while (ready_tensor != NULL) {
        struct hvd_ready_tensor *next = ready_tensor->next;

        free_ready_tensor(ready_tensor);
        ready_tensor = next;
    }
}

void hvd_ready_table_finish(struct hvd_ready_table *table)
{
    size_t cursor = 0;
    struct hvd_ready_tensor *ready_tensor;

    while ((ready_tensor = hvd_hash_table_next(&table->open, &cursor)) != NULL) {
        free_ready_tensor(ready_tensor);
    }
    hvd_hash_table_finish(&table->open);
    free_list(table->complete);
    free_list(table->spare);
    *table = (struct hvd_ready_table){0};
}

static struct hvd_ready_tensor *take_spare(struct hvd_ready_table *table)
{
    size_t branches = (size_t)table->sets->branches;
    struct hvd_ready_tensor *ready_tensor = table->spare;

    if (ready_tensor != NULL) {
        table->spare = ready_tensor->next;
        memset(ready_tensor->seen, 0, branches);
        ready_tensor->next = NULL;
        return ready_tensor;
    }
    ready_tensor = calloc(1, sizeof(*ready_tensor));
    if (ready_tensor != NULL) {
        ready_tensor->seen = calloc(branches, 1);
        if (ready_tensor->seen == NULL) {
            free(ready_tensor);
            return NULL;
        }
    }
    return ready_tensor;
}

void hvd_ready_table_give_back(struct hvd_ready_table *table,
                               struct hvd_ready_tensor *ready_tensor)
{
    reset_tensor(ready_tensor);
    ready_tensor->next = table->spare;
    table->spare = ready_tensor;
}

const struct hvd_descriptor *
hvd_ready_tensor_descriptor(const struct hvd_ready_tensor *ready_tensor)
{
    return ready_tensor->cached != NULL ? ready_tensor->cached->descriptor
                                        : ready_tensor->descriptions[0];
}

void hvd_ready_tensor_find_rank(const struct hvd_ready_table *table,
                                struct hvd_ready_tensor *ready_tensor)
{
    const struct hvd_set *set = hvd_sets_find(table->sets, ready_tensor->key.set);

    if (ready_tensor->cached != NULL && ready_tensor->described > 0 &&
        ready_tensor->cached_rank < 0 && set != NULL) {
        ready_tensor->cached_rank =
            hvd_sets_first_in_branch(table->sets, set, ready_tensor->cached_branch);
    }
}

static int add_description(struct hvd_ready_tensor *ready_tensor,
                           const struct hvd_descriptor *descriptor)
{
    struct hvd_descriptor **more = ready_tensor->descriptions;
    struct hvd_descriptor *copy;

    for (int i = 0; i < ready_tensor->described; i++) {
        if (hvd_descriptor_equal(ready_tensor->descriptions[i], descriptor) &&
            strcmp(ready_tensor->descriptions[i]->name, descriptor->name) == 0) {
            return 0;
        }
    }
    if (ready_tensor->described == ready_tensor->described_capacity) {
        int capacity = 2 * ready_tensor->described_capacity + 1;

        more = realloc(more, (size_t)capacity * sizeof(more[0]));
        if (more == NULL) {
            return HVD_ERR_NOMEM;
        }
        ready_tensor->descriptions = more;
        ready_tensor->described_capacity = capacity;
    }
    copy = hvd_descriptor_copy(descriptor);
    if (copy == NULL) {
        return HVD_ERR_NOMEM;
    }
    ready_tensor->descriptions[ready_tensor->described++] = copy;
    return 0;
}

static int add_named(struct hvd_ready_tensor *ready_tensor, int branch,
                     const struct hvd_tensor_report *report)
{
    if (report->cached == NULL) {
        return add_description(ready_tensor, report->descriptor);
    }
    if (ready_tensor->cached == NULL) {
        ready_tensor->cached = report->cached;
        ready_tensor->cached_rank = report->rank;
        ready_tensor->cached_branch = branch;
        ready_tensor->cached->uses++;
        return 0;
    }
    /* One of the two ids of this name is outdated, and its description may differ. */
    return ready_tensor->cached == report->cached
               ? 0
               : add_description(ready_tensor, report->cached->descriptor);
}

static int add_rows(struct hvd_ready_tensor *ready_tensor,
                    const struct hvd_tensor_report *report)
{
    uint32_t needed = ready_tensor->row_count + report->row_count;

    if (needed > ready_tensor->row_capacity) {
        struct hvd_rows *rows = realloc(ready_tensor->rows, needed * sizeof(rows[0]));

        if (rows == NULL) {
            return HVD_ERR_NOMEM;
        }
        ready_tensor->rows = rows;
        ready_tensor->row_capacity = needed;
    }
    memcpy(ready_tensor->rows + ready_tensor->row_count, report->rows,
           report->row_count * sizeof(ready_tensor->rows[0]));
    ready_tensor->row_count = needed;
    return 0;
}

/* Adds the tensor to the list of complete ones if every branch that its set needs has
 * reported it; returns whether it did. */
static bool complete_tensor(struct hvd_ready_table *table,
                            struct hvd_ready_tensor *ready_tensor)
{
    const struct hvd_sets *sets = table->sets;
    const struct hvd_set *set = hvd_sets_find(sets, ready_tensor->key.set);
    bool lacks = false;

    for (int i = 0; set != NULL && i < sets->branches; i++) {
        if (ready_tensor->seen[i] || set->in_branch[i] == 0) {
            continue;
        }
        if (hvd_sets_needs(sets, set, i)) {
            return false;
        }
        lacks = true;
    }
    ready_tensor->is_partial |= lacks;
    ready_tensor->next = NULL;
    *table->complete_end = ready_tensor;
    table->complete_end = &ready_tensor->next;
    return true;
}

static int add_report(struct hvd_ready_tensor *ready_tensor, int branch,
                      const struct hvd_tensor_report *report)
{
    if (add_named(ready_tensor, branch, report) != 0 ||
        (report->row_count > 0 && add_rows(ready_tensor, report) != 0)) {
        return HVD_ERR_NOMEM;
    }
    if (report->max_block > ready_tensor->max_block) {
        ready_tensor->max_block = report->max_block;
    }
    ready_tensor->is_partial |= report->is_partial;
    ready_tensor->seen[branch] = !report->has_more;
    return 0;
}

/* Takes the first report of a tensor. On most ranks it is the only one, and the tensor
 * never enters the hash table. */
static int add_first(struct hvd_ready_table *table, const struct hvd_key *key, int branch,
                     const struct hvd_tensor_report *report)
{
    struct hvd_ready_tensor *ready_tensor = take_spare(table);
    int status =
        ready_tensor != NULL ? add_report(ready_tensor, branch, report) : HVD_ERR_NOMEM;

    if (status == 0) {
        ready_tensor->key = *key;
        /* The name must live as long as the ready tensor. */
        ready_tensor->key.name = hvd_ready_tensor_descriptor(ready_tensor)->name;
        status = !report->has_more && complete_tensor(table, ready_tensor)
                     ? 0
                     : hvd_hash_table_add(&table->open, key->hash, ready_tensor);
    }
    if (status != 0 && ready_tensor != NULL) {
        hvd_ready_table_give_back(table, ready_tensor);
    }
    return status;
}

int hvd_ready_table_add(struct hvd_ready_table *table, const struct hvd_key *key,
                        int branch, const struct hvd_tensor_report *report)
{
    struct hvd_ready_tensor *ready_tensor =
        hvd_hash_table_find(&table->open, key->hash, hvd_key_equal, key);

    if (ready_tensor == NULL) {
        return add_first(table, key, branch, report);
    }
    if (ready_tensor->seen[branch]) {
        return HVD_ERR_ARG;
    }
    if (add_report(ready_tensor, branch, report) != 0) {
        return HVD_ERR_NOMEM;
    }
    if (!report->has_more && complete_tensor(table, ready_tensor)) {
        hvd_hash_table_remove(&table->open, key->hash, hvd_key_equal, key);
    }
    return 0;
}

void hvd_ready_table_recheck(struct hvd_ready_table *table)
{
    struct hvd_ready_tensor *done;

    do {
        size_t cursor = 0;
        struct hvd_ready_tensor *ready_tensor;

        done = NULL;
        while (done == NULL &&
               (ready_tensor = hvd_hash_table_next(&table->open, &cursor)) != NULL) {
            done = complete_tensor(table, ready_tensor) ? ready_tensor : NULL;
        }
        if (done != NULL) {
            hvd_hash_table_remove(&table->open, done->key.hash, hvd_key_equal,
                                  &done->key);
        }
    } while (done != NULL);
}

struct hvd_ready_tensor *hvd_ready_table_take(struct hvd_ready_table *table)
{
    struct hvd_ready_tensor *ready_tensor = table->complete;

    if (ready_tensor != NULL) {
        table->complete = ready_tensor->next;
        if (table->complete == NULL) {
            table->complete_end = &table->complete;
        }
        ready_tensor->next = NULL;
    }
    return ready_tensor;
}

void hvd_ready_table_drop(struct hvd_ready_table *table, const struct hvd_key *key)
{
    struct hvd_ready_tensor *ready_tensor =
        hvd_hash_table_remove(&table->open, key->hash, hvd_key_equal, key);

    if (ready_tensor != NULL) {
        hvd_ready_table_give_back(table, ready_tensor);
    }
}

static bool is_dropped(const struct hvd_ready_tensor *ready_tensor,
                       const struct hvd_set *set)
{
    return ready_tensor->key.set == set->id &&
           hvd_set_fails(set, hvd_ready_tensor_descriptor(ready_tensor));
}

/* Returns an incomplete tensor that must fail because the set is aborted, or NULL. */
static const struct hvd_ready_tensor *find_dropped(const struct hvd_ready_table *table,
                                                   const struct hvd_set *set)
{
    size_t cursor = 0;
    const struct hvd_ready_tensor *ready_tensor =
        hvd_hash_table_next(&table->open, &cursor);

    while (ready_tensor != NULL && !is_dropped(ready_tensor, set)) {
        ready_tensor = hvd_hash_table_next(&table->open, &cursor);
    }
    return ready_tensor;
}

void hvd_ready_table_drop_set(struct hvd_ready_table *table, const struct hvd_set *set)
{
    const struct hvd_ready_tensor *open = find_dropped(table, set);
    struct hvd_ready_tensor **at = &table->complete;

    while (open != NULL) {
        hvd_ready_table_drop(table, &open->key);
        open = find_dropped(table, set);
    }
    while (*at != NULL) {
        struct hvd_ready_tensor *ready_tensor = *at;

        if (is_dropped(ready_tensor, set)) {
            *at = ready_tensor->next;
            hvd_ready_table_give_back(table, ready_tensor);
        } else {
            at = &ready_tensor->next;
        }
    }
    table->complete_end = at;
}

/* --- encoding ---
 *
 * A report of one tensor is a record (count: the rows; id: the tensor's, or 0 if it is
 * described in full), the flags, the largest block, then the description or the rank that
 * named it by its id, and the rows. */

enum {
    HAS_MORE = 1,
    IS_PARTIAL = 2
};

void hvd_put_tensor_report(struct hvd_writer *writer,
                           const struct hvd_tensor_report *report)
{
    bool is_named = report->cached != NULL && !report->cached->is_evicted;

    hvd_put_record(writer, HVD_REPORT_TENSOR, report->row_count,
                   is_named ? report->cached->id : 0);
    hvd_put_int(writer, (report->has_more ? HAS_MORE : 0) |
                            (report->is_partial ? IS_PARTIAL : 0));
    hvd_put_int(writer, report->max_block);
    if (is_named) {
        hvd_put_int(writer, report->rank);
    } else {
        hvd_put_descriptor(writer, report->cached != NULL ? report->cached->descriptor
                                                          : report->descriptor);
    }
    hvd_put(writer, report->rows, report->row_count * sizeof(struct hvd_rows));
}

void hvd_put_ready_tensor(struct hvd_writer *writer,
                          const struct hvd_ready_tensor *ready_tensor)
{
    int count = ready_tensor->described + (ready_tensor->cached != NULL ? 1 : 0);

    for (int i = 0; i < count; i++) {
        bool is_last = i == count - 1;
        int described = ready_tensor->cached != NULL ? i - 1 : i;
        struct hvd_tensor_report report = {
            .cached = described < 0 ? ready_tensor->cached : NULL,
            .rank = described < 0 ? ready_tensor->cached_rank : -1,
            .descriptor = described < 0 ? NULL : ready_tensor->descriptions[described],
            .has_more = !is_last,
            .is_partial = ready_tensor->is_partial,
            .max_block = ready_tensor->max_block,
            .rows = is_last ? ready_tensor->rows : NULL,
            .row_count = is_last ? ready_tensor->row_count : 0,
        };

        hvd_put_tensor_report(writer, &report);
    }
}

static bool have_possible_rows(const struct hvd_tensor_report *report)
{
    for (uint32_t i = 0; i < report->row_count; i++) {
        struct hvd_rows rows;

        memcpy(&rows, (const char *)report->rows + i * sizeof(rows), sizeof(rows));
        if (rows.rank < 0 || rows.rank > INT32_MAX || rows.rows < 0) {
            return false;
        }
    }
    return true;
}

int hvd_take_tensor_report(struct hvd_reader *reader, const struct hvd_record *record,
                           struct hvd_descriptor *descriptor,
                           struct hvd_tensor_report *report)
{
    int64_t flags = hvd_take_int(reader);

    *report = (struct hvd_tensor_report){.row_count = record->count};
    report->has_more = (flags & HAS_MORE) != 0;
    report->is_partial = (flags & IS_PARTIAL) != 0;
    report->max_block = hvd_take_int(reader);
    if (record->id == 0) {
        if (hvd_take_descriptor(reader, descriptor) != 0) {
            return HVD_ERR_ARG;
        }
        report->descriptor = descriptor;
    } else {
        int64_t rank = hvd_take_int(reader);

        if (rank < -1 || rank > INT32_MAX) {
            return HVD_ERR_ARG;
        }
        report->rank = (int)rank;
    }
    report->rows = hvd_take(reader, (size_t)record->count * sizeof(struct hvd_rows));
    return reader->failed || report->max_block < 0 || !have_possible_rows(report)
               ? HVD_ERR_ARG
               : 0;
}
