/* SPDX-License-Identifier: Apache-2.0 */
/* Which branches of the tree have reported which tensor, and as what. */
#include "collectives/agreement/tally.h"

#include <stdlib.h>
#include <string.h>

static bool has_key(const void *item, const void *key)
{
    const struct hvd_tally *tally = item;

    return hvd_key_equal(&tally->key, key);
}

void hvd_tallies_init(struct hvd_tallies *tallies, const struct hvd_members *members)
{
    *tallies = (struct hvd_tallies){.members = members};
    tallies->complete_end = &tallies->complete;
}

static void reset(struct hvd_tally *tally)
{
    if (tally->known != NULL) {
        tally->known->uses--;
        tally->known = NULL;
    }
    for (int i = 0; i < tally->described; i++) {
        hvd_proposal_free(tally->descriptions[i]);
    }
    tally->described = 0;
    tally->is_partial = false;
    tally->row_count = 0;
    tally->max_block = 0;
}

static void free_tally(struct hvd_tally *tally)
{
    reset(tally);
    free(tally->descriptions);
    free(tally->seen);
    free(tally->rows);
    free(tally);
}

static void free_list(struct hvd_tally *tally)
{
    while (tally != NULL) {
        struct hvd_tally *next = tally->next;

        free_tally(tally);
        tally = next;
    }
}

void hvd_tallies_finish(struct hvd_tallies *tallies)
{
    size_t cursor = 0;
    struct hvd_tally *tally;

    while ((tally = hvd_table_next(&tallies->open, &cursor)) != NULL) {
        free_tally(tally);
    }
    hvd_table_finish(&tallies->open);
    free_list(tallies->complete);
    free_list(tallies->spare);
    *tallies = (struct hvd_tallies){0};
}

static struct hvd_tally *take_spare(struct hvd_tallies *tallies)
{
    size_t branches = (size_t)tallies->members->branches;
    struct hvd_tally *tally = tallies->spare;

    if (tally != NULL) {
        tallies->spare = tally->next;
        memset(tally->seen, 0, branches);
        tally->next = NULL;
        return tally;
    }
    tally = calloc(1, sizeof(*tally));
    if (tally != NULL) {
        tally->seen = calloc(branches, 1);
        if (tally->seen == NULL) {
            free(tally);
            return NULL;
        }
    }
    return tally;
}

void hvd_tallies_give_back(struct hvd_tallies *tallies, struct hvd_tally *tally)
{
    reset(tally);
    tally->next = tallies->spare;
    tallies->spare = tally;
}

const struct hvd_proposal *hvd_tally_proposal(const struct hvd_tally *tally)
{
    return tally->known != NULL ? tally->known->proposal : tally->descriptions[0];
}

static int add_description(struct hvd_tally *tally, const struct hvd_proposal *proposal)
{
    struct hvd_proposal **more = tally->descriptions;
    struct hvd_proposal *copy;

    for (int i = 0; i < tally->described; i++) {
        if (hvd_proposal_equal(tally->descriptions[i], proposal) &&
            strcmp(tally->descriptions[i]->name, proposal->name) == 0) {
            return 0;
        }
    }
    if (tally->described == tally->described_capacity) {
        int capacity = 2 * tally->described_capacity + 1;

        more = realloc(more, (size_t)capacity * sizeof(more[0]));
        if (more == NULL) {
            return HVD_ERR_NOMEM;
        }
        tally->descriptions = more;
        tally->described_capacity = capacity;
    }
    copy = hvd_proposal_copy(proposal);
    if (copy == NULL) {
        return HVD_ERR_NOMEM;
    }
    tally->descriptions[tally->described++] = copy;
    return 0;
}

/* The key's name must live as long as the tally. */
static void set_key(struct hvd_tally *tally, const struct hvd_key *key)
{
    tally->key = *key;
    tally->key.name = tally->known != NULL ? tally->known->proposal->name
                                           : tally->descriptions[0]->name;
}

static int add_named(struct hvd_tally *tally, const struct hvd_tensor_report *report)
{
    if (report->known == NULL) {
        return add_description(tally, report->proposal);
    }
    if (tally->known == NULL) {
        tally->known = report->known;
        tally->known->uses++;
        return 0;
    }
    /* An older id of the same name: its description may differ. */
    return tally->known == report->known
               ? 0
               : add_description(tally, report->known->proposal);
}

static int add_rows(struct hvd_tally *tally, const struct hvd_tensor_report *report)
{
    uint32_t needed = tally->row_count + report->row_count;

    if (needed > tally->row_capacity) {
        struct hvd_rows *rows = realloc(tally->rows, needed * sizeof(rows[0]));

        if (rows == NULL) {
            return HVD_ERR_NOMEM;
        }
        tally->rows = rows;
        tally->row_capacity = needed;
    }
    if (report->row_count > 0) {
        memcpy(tally->rows + tally->row_count, report->rows,
               report->row_count * sizeof(tally->rows[0]));
    }
    tally->row_count = needed;
    return 0;
}

static bool is_complete(const struct hvd_tallies *tallies, const struct hvd_tally *tally)
{
    const struct hvd_members *members = tallies->members;

    for (int i = 0; i < members->branches; i++) {
        if (!tally->seen[i] && hvd_members_needs(members, tally->key.set, i)) {
            return false;
        }
    }
    return true;
}

static bool has_lack(const struct hvd_tallies *tallies, const struct hvd_tally *tally)
{
    const struct hvd_member_set *set = hvd_members_find(tallies->members, tally->key.set);

    for (int i = 0; set != NULL && i < tallies->members->branches; i++) {
        if (!tally->seen[i] && set->in_branch[i] > 0) {
            return true;
        }
    }
    return false;
}

static void complete(struct hvd_tallies *tallies, struct hvd_tally *tally)
{
    tally->is_partial |= has_lack(tallies, tally);
    tally->next = NULL;
    *tallies->complete_end = tally;
    tallies->complete_end = &tally->next;
}

static struct hvd_tally *open_tally(struct hvd_tallies *tallies,
                                    const struct hvd_key *key,
                                    const struct hvd_tensor_report *report,
                                    int64_t now_ns)
{
    struct hvd_tally *tally = take_spare(tallies);

    if (tally == NULL) {
        return NULL;
    }
    tally->since_ns = now_ns;
    if (add_named(tally, report) != 0) {
        hvd_tallies_give_back(tallies, tally);
        return NULL;
    }
    set_key(tally, key);
    if (hvd_table_add(&tallies->open, key->hash, tally) != 0) {
        hvd_tallies_give_back(tallies, tally);
        return NULL;
    }
    return tally;
}

int hvd_tallies_add(struct hvd_tallies *tallies, const struct hvd_key *key, int branch,
                    const struct hvd_tensor_report *report, int64_t now_ns)
{
    struct hvd_tally *tally = hvd_table_find(&tallies->open, key->hash, has_key, key);
    int status = 0;

    if (tally == NULL) {
        tally = open_tally(tallies, key, report, now_ns);
    } else if (tally->seen[branch]) {
        return HVD_ERR_ARG;
    } else {
        status = add_named(tally, report);
    }
    if (tally == NULL || status != 0 || add_rows(tally, report) != 0) {
        return HVD_ERR_NOMEM;
    }
    if (report->max_block > tally->max_block) {
        tally->max_block = report->max_block;
    }
    tally->is_partial |= report->is_partial;
    if (report->has_more) {
        return 0;
    }
    tally->seen[branch] = 1;
    if (is_complete(tallies, tally)) {
        hvd_table_remove(&tallies->open, key->hash, has_key, key);
        complete(tallies, tally);
    }
    return 0;
}

void hvd_tallies_recheck(struct hvd_tallies *tallies)
{
    struct hvd_tally *done;

    do {
        size_t cursor = 0;
        struct hvd_tally *tally;

        done = NULL;
        while (done == NULL &&
               (tally = hvd_table_next(&tallies->open, &cursor)) != NULL) {
            done = is_complete(tallies, tally) ? tally : NULL;
        }
        if (done != NULL) {
            hvd_table_remove(&tallies->open, done->key.hash, has_key, &done->key);
            complete(tallies, done);
        }
    } while (done != NULL);
}

struct hvd_tally *hvd_tallies_take(struct hvd_tallies *tallies)
{
    struct hvd_tally *tally = tallies->complete;

    if (tally != NULL) {
        tallies->complete = tally->next;
        if (tallies->complete == NULL) {
            tallies->complete_end = &tallies->complete;
        }
        tally->next = NULL;
    }
    return tally;
}

void hvd_tallies_drop(struct hvd_tallies *tallies, const struct hvd_key *key)
{
    struct hvd_tally *tally = hvd_table_remove(&tallies->open, key->hash, has_key, key);

    if (tally != NULL) {
        hvd_tallies_give_back(tallies, tally);
    }
}
