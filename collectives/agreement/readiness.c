/* SPDX-License-Identifier: Apache-2.0 */
/* Which branches of the tree have reported which tensor, and as what. */
#include "collectives/agreement/readiness.h"

#include <stdlib.h>
#include <string.h>

void hvd_readiness_table_init(struct hvd_readiness_table *table,
                              const struct hvd_sets *sets)
{
    *table = (struct hvd_readiness_table){.sets = sets};
    table->complete_end = &table->complete;
}

static void reset(struct hvd_readiness *readiness)
{
    if (readiness->cached != NULL) {
        readiness->cached->uses--;
        readiness->cached = NULL;
    }
    for (int i = 0; i < readiness->described; i++) {
        hvd_descriptor_free(readiness->descriptions[i]);
    }
    readiness->described = 0;
    readiness->is_partial = false;
    readiness->row_count = 0;
    readiness->max_block = 0;
}

static void free_readiness(struct hvd_readiness *readiness)
{
    reset(readiness);
    free(readiness->descriptions);
    free(readiness->seen);
    free(readiness->rows);
    free(readiness);
}

static void free_list(struct hvd_readiness *readiness)
{
    while (readiness != NULL) {
        struct hvd_readiness *next = readiness->next;

        free_readiness(readiness);
        readiness = next;
    }
}

void hvd_readiness_table_finish(struct hvd_readiness_table *table)
{
    size_t cursor = 0;
    struct hvd_readiness *readiness;

    while ((readiness = hvd_hash_table_next(&table->open, &cursor)) != NULL) {
        free_readiness(readiness);
    }
    hvd_hash_table_finish(&table->open);
    free_list(table->complete);
    free_list(table->spare);
    *table = (struct hvd_readiness_table){0};
}

static struct hvd_readiness *take_spare(struct hvd_readiness_table *table)
{
    size_t branches = (size_t)table->sets->branches;
    struct hvd_readiness *readiness = table->spare;

    if (readiness != NULL) {
        table->spare = readiness->next;
        memset(readiness->seen, 0, branches);
        readiness->next = NULL;
        return readiness;
    }
    readiness = calloc(1, sizeof(*readiness));
    if (readiness != NULL) {
        readiness->seen = calloc(branches, 1);
        if (readiness->seen == NULL) {
            free(readiness);
            return NULL;
        }
    }
    return readiness;
}

void hvd_readiness_table_give_back(struct hvd_readiness_table *table,
                                   struct hvd_readiness *readiness)
{
    reset(readiness);
    readiness->next = table->spare;
    table->spare = readiness;
}

const struct hvd_descriptor *
hvd_readiness_descriptor(const struct hvd_readiness *readiness)
{
    return readiness->cached != NULL ? readiness->cached->descriptor
                                     : readiness->descriptions[0];
}

void hvd_readiness_find_rank(const struct hvd_readiness_table *table,
                             struct hvd_readiness *readiness)
{
    const struct hvd_set *set = hvd_sets_find(table->sets, readiness->key.set);

    if (readiness->cached != NULL && readiness->described > 0 &&
        readiness->cached_rank < 0 && set != NULL) {
        readiness->cached_rank =
            hvd_sets_first_in_branch(table->sets, set, readiness->cached_branch);
    }
}

static int add_description(struct hvd_readiness *readiness,
                           const struct hvd_descriptor *descriptor)
{
    struct hvd_descriptor **more = readiness->descriptions;
    struct hvd_descriptor *copy;

    for (int i = 0; i < readiness->described; i++) {
        if (hvd_descriptor_equal(readiness->descriptions[i], descriptor) &&
            strcmp(readiness->descriptions[i]->name, descriptor->name) == 0) {
            return 0;
        }
    }
    if (readiness->described == readiness->described_capacity) {
        int capacity = 2 * readiness->described_capacity + 1;

        more = realloc(more, (size_t)capacity * sizeof(more[0]));
        if (more == NULL) {
            return HVD_ERR_NOMEM;
        }
        readiness->descriptions = more;
        readiness->described_capacity = capacity;
    }
    copy = hvd_descriptor_copy(descriptor);
    if (copy == NULL) {
        return HVD_ERR_NOMEM;
    }
    readiness->descriptions[readiness->described++] = copy;
    return 0;
}

static int add_named(struct hvd_readiness *readiness, int branch,
                     const struct hvd_tensor_report *report)
{
    if (report->cached == NULL) {
        return add_description(readiness, report->descriptor);
    }
    if (readiness->cached == NULL) {
        readiness->cached = report->cached;
        readiness->cached_rank = report->rank;
        readiness->cached_branch = branch;
        readiness->cached->uses++;
        return 0;
    }
    /* An older id of the same name: its description may differ. */
    return readiness->cached == report->cached
               ? 0
               : add_description(readiness, report->cached->descriptor);
}

static int add_rows(struct hvd_readiness *readiness,
                    const struct hvd_tensor_report *report)
{
    uint32_t needed = readiness->row_count + report->row_count;

    if (needed > readiness->row_capacity) {
        struct hvd_rows *rows = realloc(readiness->rows, needed * sizeof(rows[0]));

        if (rows == NULL) {
            return HVD_ERR_NOMEM;
        }
        readiness->rows = rows;
        readiness->row_capacity = needed;
    }
    memcpy(readiness->rows + readiness->row_count, report->rows,
           report->row_count * sizeof(readiness->rows[0]));
    readiness->row_count = needed;
    return 0;
}

/* Whether every branch has reported of which its set needs a report; then it is listed. */
static bool complete(struct hvd_readiness_table *table, struct hvd_readiness *readiness)
{
    const struct hvd_sets *sets = table->sets;
    const struct hvd_set *set = hvd_sets_find(sets, readiness->key.set);
    bool lacks = false;

    for (int i = 0; set != NULL && i < sets->branches; i++) {
        if (readiness->seen[i] || set->in_branch[i] == 0) {
            continue;
        }
        if (hvd_sets_needs(sets, set, i)) {
            return false;
        }
        lacks = true;
    }
    readiness->is_partial |= lacks;
    readiness->next = NULL;
    *table->complete_end = readiness;
    table->complete_end = &readiness->next;
    return true;
}

static int add_report(struct hvd_readiness *readiness, int branch,
                      const struct hvd_tensor_report *report)
{
    if (add_named(readiness, branch, report) != 0 ||
        (report->row_count > 0 && add_rows(readiness, report) != 0)) {
        return HVD_ERR_NOMEM;
    }
    if (report->max_block > readiness->max_block) {
        readiness->max_block = report->max_block;
    }
    readiness->is_partial |= report->is_partial;
    readiness->seen[branch] = !report->has_more;
    return 0;
}

/* The first report of a tensor. On most ranks it is the only one, and the record never gets into the
 * table. */
static int add_first(struct hvd_readiness_table *table, const struct hvd_key *key,
                     int branch, const struct hvd_tensor_report *report)
{
    struct hvd_readiness *readiness = take_spare(table);
    int status =
        readiness != NULL ? add_report(readiness, branch, report) : HVD_ERR_NOMEM;

    if (status == 0) {
        readiness->key = *key;
        /* The name must live as long as the record. */
        readiness->key.name = hvd_readiness_descriptor(readiness)->name;
        status = !report->has_more && complete(table, readiness)
                     ? 0
                     : hvd_hash_table_add(&table->open, key->hash, readiness);
    }
    if (status != 0 && readiness != NULL) {
        hvd_readiness_table_give_back(table, readiness);
    }
    return status;
}

int hvd_readiness_table_add(struct hvd_readiness_table *table, const struct hvd_key *key,
                            int branch, const struct hvd_tensor_report *report)
{
    struct hvd_readiness *readiness =
        hvd_hash_table_find(&table->open, key->hash, hvd_key_equal, key);

    if (readiness == NULL) {
        return add_first(table, key, branch, report);
    }
    if (readiness->seen[branch]) {
        return HVD_ERR_ARG;
    }
    if (add_report(readiness, branch, report) != 0) {
        return HVD_ERR_NOMEM;
    }
    if (!report->has_more && complete(table, readiness)) {
        hvd_hash_table_remove(&table->open, key->hash, hvd_key_equal, key);
    }
    return 0;
}

void hvd_readiness_table_recheck(struct hvd_readiness_table *table)
{
    struct hvd_readiness *done;

    do {
        size_t cursor = 0;
        struct hvd_readiness *readiness;

        done = NULL;
        while (done == NULL &&
               (readiness = hvd_hash_table_next(&table->open, &cursor)) != NULL) {
            done = complete(table, readiness) ? readiness : NULL;
        }
        if (done != NULL) {
            hvd_hash_table_remove(&table->open, done->key.hash, hvd_key_equal,
                                  &done->key);
        }
    } while (done != NULL);
}

struct hvd_readiness *hvd_readiness_table_take(struct hvd_readiness_table *table)
{
    struct hvd_readiness *readiness = table->complete;

    if (readiness != NULL) {
        table->complete = readiness->next;
        if (table->complete == NULL) {
            table->complete_end = &table->complete;
        }
        readiness->next = NULL;
    }
    return readiness;
}

void hvd_readiness_table_drop(struct hvd_readiness_table *table,
                              const struct hvd_key *key)
{
    struct hvd_readiness *readiness =
        hvd_hash_table_remove(&table->open, key->hash, hvd_key_equal, key);

    if (readiness != NULL) {
        hvd_readiness_table_give_back(table, readiness);
    }
}

static bool is_dropped(const struct hvd_readiness *readiness, const struct hvd_set *set)
{
    return readiness->key.set == set->id &&
           hvd_set_fails(set, hvd_readiness_descriptor(readiness));
}

/* Of those that are not complete; NULL: there is none. */
static const struct hvd_readiness *find_dropped(const struct hvd_readiness_table *table,
                                                const struct hvd_set *set)
{
    size_t cursor = 0;
    const struct hvd_readiness *readiness = hvd_hash_table_next(&table->open, &cursor);

    while (readiness != NULL && !is_dropped(readiness, set)) {
        readiness = hvd_hash_table_next(&table->open, &cursor);
    }
    return readiness;
}

void hvd_readiness_table_drop_set(struct hvd_readiness_table *table,
                                  const struct hvd_set *set)
{
    const struct hvd_readiness *open = find_dropped(table, set);
    struct hvd_readiness **at = &table->complete;

    while (open != NULL) {
        hvd_readiness_table_drop(table, &open->key);
        open = find_dropped(table, set);
    }
    while (*at != NULL) {
        struct hvd_readiness *readiness = *at;

        if (is_dropped(readiness, set)) {
            *at = readiness->next;
            hvd_readiness_table_give_back(table, readiness);
        } else {
            at = &readiness->next;
        }
    }
    table->complete_end = at;
}

/* --- encoding ---
 *
 * A report of one tensor is a record (its count is the rows, its id the tensor's, 0 when it is described
 * in full), whether more follows and whether a rank lacks it, the largest block, the description or the
 * rank that has it by its id, the rows. */

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

void hvd_put_readiness(struct hvd_writer *writer, const struct hvd_readiness *readiness)
{
    int count = readiness->described + (readiness->cached != NULL ? 1 : 0);

    for (int i = 0; i < count; i++) {
        bool is_last = i == count - 1;
        int described = readiness->cached != NULL ? i - 1 : i;
        struct hvd_tensor_report report = {
            .cached = described < 0 ? readiness->cached : NULL,
            .rank = described < 0 ? readiness->cached_rank : -1,
            .descriptor = described < 0 ? NULL : readiness->descriptions[described],
            .has_more = !is_last,
            .is_partial = readiness->is_partial,
            .max_block = readiness->max_block,
            .rows = is_last ? readiness->rows : NULL,
            .row_count = is_last ? readiness->row_count : 0,
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
