/* SPDX-License-Identifier: Apache-2.0 */
/* Rank 0's table of process sets that their members create alone. */
#include "collectives/agreement/set_creations.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collectives/set/rank_list.h"
#include "gpu_binding/base/error.h"

/* A list of members, of which some have asked for the set. */
struct hvd_set_creation {
    struct hvd_key key; /* of the name below; first, for hvd_key_equal */
    struct hvd_set_creation *next; /* next list of the same name */
    char *list;
    int *ranks; /* [count] ascending */
    bool *has_asked; /* [count] */
    int count;
    int asked; /* members that have asked */
    struct hvd_error failure; /* status 0: the set can still be created */
    char name[];
};

/* --- the table --- */

static void free_creation(struct hvd_set_creation *creation)
{
    free(creation->list);
    free(creation->ranks);
    free(creation->has_asked);
    free(creation);
}

void hvd_set_creations_finish(struct hvd_set_creations *creations)
{
    struct hvd_set_creation *creation;
    size_t cursor = 0;

    while ((creation = hvd_hash_table_next(&creations->by_name, &cursor)) != NULL) {
        while (creation != NULL) {
            struct hvd_set_creation *next = creation->next;

            free_creation(creation);
            creation = next;
        }
    }
    hvd_hash_table_finish(&creations->by_name);
}

static struct hvd_set_creation *find_name(const struct hvd_set_creations *creations,
                                          const char *name)
{
    const struct hvd_key key = hvd_key_make(creations->sets->global->id, name);

    return hvd_hash_table_find(&creations->by_name, key.hash, hvd_key_equal, &key);
}

static int create_creation(const struct hvd_set_wish *wish, const struct hvd_sets *sets,
                           struct hvd_set_creation **out)
{
    size_t bytes = strlen(wish->name) + 1;
    struct hvd_set_creation *creation = calloc(1, sizeof(*creation) + bytes);
    int status = creation != NULL ? hvd_rank_list_read(wish->list, sets->layout->size,
                                                       &creation->ranks, &creation->count)
                                  : HVD_ERR_NOMEM;

    if (status == 0) {
        memcpy(creation->name, wish->name, bytes);
        creation->key = hvd_key_make(sets->global->id, creation->name);
        creation->list = strdup(wish->list);
        creation->has_asked = calloc((size_t)creation->count, sizeof(bool));
        status =
            creation->list == NULL || creation->has_asked == NULL ? HVD_ERR_NOMEM : 0;
    }
    if (status != 0) {
        if (creation != NULL) {
            free_creation(creation);
        }
        return status == HVD_ERR_ARG ? HVD_ERR_NET : status;
    }
    *out = creation;
    return 0;
}

/* Appends the list to those of the same name. */
static int insert_creation(struct hvd_set_creations *creations,
                           struct hvd_set_creation *creation)
{
    struct hvd_set_creation *last = find_name(creations, creation->name);

    if (last == NULL) {
        return hvd_hash_table_add(&creations->by_name, creation->key.hash, creation);
    }
    while (last->next != NULL) {
        last = last->next;
    }
    last->next = creation;
    return 0;
}

/* Takes the list out of the table, and frees it. */
static void drop_creation(struct hvd_set_creations *creations,
                          struct hvd_set_creation *creation)
{
    struct hvd_set_creation *before = find_name(creations, creation->name);

    if (before != creation) {
        while (before->next != creation) {
            before = before->next;
        }
        before->next = creation->next;
    } else {
        hvd_hash_table_remove(&creations->by_name, creation->key.hash, hvd_key_equal,
                              &creation->key);
        if (creation->next != NULL) { /* cannot fail: removing an item has freed a slot */
            (void)hvd_hash_table_add(&creations->by_name, creation->key.hash,
                                     creation->next);
        }
    }
    free_creation(creation);
}

/* --- ranks of a list --- */

static int index_of(const struct hvd_set_creation *creation, int rank)
{
    return hvd_rank_list_index(creation->ranks, creation->count, rank);
}

/* Whether the rank is in the list and has not asked for the set. */
static bool lacks_rank(const struct hvd_set_creation *creation, int rank)
{
    int index = index_of(creation, rank);

    return index >= 0 && !creation->has_asked[index];
}

static void note_rank(struct hvd_set_creation *creation, int rank)
{
    if (lacks_rank(creation, rank)) {
        creation->has_asked[index_of(creation, rank)] = true;
        creation->asked++;
    }
}

static bool has_common_rank(const struct hvd_set_creation *creation, const int *ranks,
                            int count)
{
    for (int i = 0; i < count; i++) {
        if (index_of(creation, ranks[i]) >= 0) {
            return true;
        }
    }
    return false;
}

bool hvd_set_creations_lack(const struct hvd_set_creations *creations, const char *name,
                            int rank)
{
    const struct hvd_set_creation *creation = find_name(creations, name);

    while (creation != NULL &&
           (creation->failure.status != 0 || !lacks_rank(creation, rank))) {
        creation = creation->next;
    }
    return creation != NULL;
}

/* --- decisions --- */

static int put_outcome(struct hvd_decision_writers *writers, int set,
                       const struct hvd_set_outcome *outcome)
{
    struct hvd_writer *writer = &writers->sets;
    size_t begin_at = writer->bytes;
    struct hvd_record record = {.kind = HVD_DECISION_SET, .id = (uint64_t)set};

    hvd_put(writer, &record, sizeof(record));
    hvd_put_record(writer, HVD_DECISION_CREATE, 1, 0);
    hvd_put_int(writer, outcome->status);
    hvd_put_text(writer, outcome->text);
    hvd_put_text(writer, outcome->name);
    hvd_put_text(writer, outcome->list);
    if (writer->failed) {
        return HVD_ERR_NOMEM;
    }
    record.count = (uint32_t)(writer->bytes - begin_at - sizeof(record));
    memcpy(writer->data + begin_at, &record, sizeof(record));
    return 0;
}

int hvd_take_set_outcome(struct hvd_reader *reader, struct hvd_set_outcome *outcome)
{
    int64_t status = hvd_take_int(reader);

    outcome->status = (int)status;
    outcome->text = hvd_take_text(reader);
    outcome->name = hvd_take_text(reader);
    outcome->list = hvd_take_text(reader);
    return reader->failed || status > 0 || status < INT32_MIN ? HVD_ERR_NET : 0;
}

/* Writes the decision that the set exists: all members have asked. */
static int put_set(const struct hvd_set_creations *creations,
                   const struct hvd_set_creation *creation,
                   struct hvd_decision_writers *writers)
{
    const struct hvd_set_outcome outcome = {
        .text = "", .name = creation->name, .list = creation->list};
    int set = hvd_sets_next(creations->sets, writers->last_set);

    writers->last_set = set;
    return put_outcome(writers, set, &outcome);
}

/* Tells these ranks why the set is not created. */
static int put_failure(const struct hvd_error *failure, const char *name,
                       const int *ranks, int count, struct hvd_decision_writers *writers)
{
    char *list = hvd_rank_list_write(ranks, count);
    const struct hvd_set_outcome outcome = {
        .status = failure->status, .text = failure->text, .name = name, .list = list};
    int status =
        list != NULL ? put_outcome(writers, HVD_SET_GLOBAL, &outcome) : HVD_ERR_NOMEM;

    free(list);
    return status;
}

/* Tells the members that have asked why the set is not created. */
static int put_failed(const struct hvd_set_creation *creation,
                      struct hvd_decision_writers *writers)
{
    int *ranks = malloc((size_t)creation->count * sizeof(ranks[0]));
    int count = 0, status;

    for (int i = 0; ranks != NULL && i < creation->count; i++) {
        if (creation->has_asked[i]) {
            ranks[count++] = creation->ranks[i];
        }
    }
    status = ranks != NULL
                 ? put_failure(&creation->failure, creation->name, ranks, count, writers)
                 : HVD_ERR_NOMEM;
    free(ranks);
    return status;
}

/* --- labels in use --- */

static const char *label_of(const char *name)
{
    size_t bytes = strlen(HVD_CREATION_NAME);

    return strncmp(name, HVD_CREATION_NAME, bytes) == 0 ? name + bytes : name;
}

/* Returns an existing set of this name that has one of the ranks, or NULL. */
static const struct hvd_set *find_living(const struct hvd_set_creations *creations,
                                         const struct hvd_set_creation *creation)
{
    const struct hvd_sets *sets = creations->sets;

    for (int i = 0; i < sets->count; i++) {
        const struct hvd_set *set = sets->by_id[i];

        if (set != NULL && set->name != NULL && strcmp(set->name, creation->name) == 0 &&
            has_common_rank(creation, set->ranks, set->count)) {
            return set;
        }
    }
    return NULL;
}

/* Whether such a set exists; if so, fills creation->failure. */
static bool is_name_in_use(const struct hvd_set_creations *creations,
                           struct hvd_set_creation *creation)
{
    const struct hvd_set *living = find_living(creations, creation);
    char *list =
        living != NULL ? hvd_rank_list_write(living->ranks, living->count) : NULL;

    if (living != NULL) {
        hvd_fail(
            &creation->failure, HVD_ERR_ARG,
            "process set '%.100s' of ranks [%.100s]: process set %d of ranks [%.100s] "
            "has the same label and a common rank: remove it first, or choose another "
            "label",
            label_of(creation->name), creation->list, living->id,
            list != NULL ? list : "");
    }
    free(list);
    return living != NULL;
}

/* --- lists that differ --- */

static int first_asked(const struct hvd_set_creation *creation)
{
    int i = 0;

    while (i < creation->count - 1 && !creation->has_asked[i]) {
        i++;
    }
    return creation->ranks[i];
}

static void fail_both(struct hvd_set_creation *one, struct hvd_set_creation *other)
{
    char text[sizeof(one->failure.text)];

    snprintf(text, sizeof(text),
             "Mismatched process sets: rank %d creates process set '%.100s' of ranks "
             "[%.100s], but rank %d of ranks [%.100s]. All members have to give the same "
             "ranks, and sets that overlap need different labels.",
             first_asked(one), label_of(one->name), one->list, first_asked(other),
             other->list);
    hvd_fail(&one->failure, HVD_ERR_MISMATCH, "%s", text);
    hvd_fail(&other->failure, HVD_ERR_MISMATCH, "%s", text);
}

/* Notes that a rank that has asked for one of the failed lists is not expected to ask for
 * the others. */
static void note_askers(struct hvd_set_creation *first,
                        const struct hvd_set_creation *failed)
{
    for (struct hvd_set_creation *at = first; at != NULL; at = at->next) {
        for (int i = 0; at->failure.status != 0 && i < failed->count; i++) {
            if (failed->has_asked[i]) {
                note_rank(at, failed->ranks[i]);
            }
        }
    }
}

/* Drops the failed lists of a name whose members have all been told. */
static void drop_told(struct hvd_set_creations *creations, struct hvd_set_creation *first)
{
    while (first != NULL) {
        struct hvd_set_creation *next = first->next;

        if (first->failure.status != 0 && first->asked == first->count) {
            drop_creation(creations, first);
        }
        first = next;
    }
}

/* Fails the lists that conflict with a new list, and the new list as well. */
static int fail_conflicting(struct hvd_set_creations *creations,
                            struct hvd_set_creation *added,
                            struct hvd_decision_writers *writers)
{
    struct hvd_set_creation *first = find_name(creations, added->name);
    int status = 0;

    for (struct hvd_set_creation *at = first; at != NULL && status == 0; at = at->next) {
        if (at != added && at->failure.status == 0 &&
            has_common_rank(at, added->ranks, added->count)) {
            fail_both(at, added);
            status = put_failed(at, writers);
        }
    }
    if (added->failure.status != 0 && status == 0) {
        status = put_failed(added, writers);
    }
    return status;
}

/* Updates the lists of a name after some of them have failed. */
static void settle_name(struct hvd_set_creations *creations,
                        struct hvd_set_creation *first)
{
    for (const struct hvd_set_creation *at = first; at != NULL; at = at->next) {
        if (at->failure.status != 0) {
            note_askers(first, at);
        }
    }
    drop_told(creations, first);
}

/* --- a rank asks --- */

/* Whether lists that failed still expect this rank; if so, tells the rank that they
 * failed. */
static bool is_late(struct hvd_set_creations *creations, const struct hvd_set_wish *wish,
                    struct hvd_decision_writers *writers, int *status)
{
    struct hvd_set_creation *first = find_name(creations, wish->name);
    const struct hvd_set_creation *failed = NULL;

    for (struct hvd_set_creation *at = first; at != NULL; at = at->next) {
        if (at->failure.status != 0 && lacks_rank(at, wish->rank)) {
            note_rank(at, wish->rank);
            failed = at;
        }
    }
    *status = failed == NULL
                  ? 0
                  : put_failure(&failed->failure, wish->name, &wish->rank, 1, writers);
    drop_told(creations, first);
    return failed != NULL;
}

/* Finds the list that a rank asks for, or creates it. *is_new: it is not in the table
 * yet. */
static int find_or_create(const struct hvd_set_creations *creations,
                          const struct hvd_set_wish *wish, struct hvd_set_creation **out,
                          bool *is_new)
{
    struct hvd_set_creation *at = find_name(creations, wish->name);

    while (at != NULL && (at->failure.status != 0 || strcmp(at->list, wish->list) != 0)) {
        at = at->next;
    }
    *is_new = at == NULL;
    *out = at;
    return at != NULL ? 0 : create_creation(wish, creations->sets, out);
}

/* Decides on a list for which one more rank has asked. */
static int decide_creation(struct hvd_set_creations *creations,
                           struct hvd_set_creation *creation, bool is_new,
                           struct hvd_decision_writers *writers)
{
    bool is_whole = creation->asked == creation->count;
    int status = 0;

    if ((is_new || is_whole) && is_name_in_use(creations, creation)) {
        status = put_failed(creation, writers);
        drop_creation(creations, creation);
        return status;
    }
    if (is_new) {
        status = fail_conflicting(creations, creation, writers);
    }
    if (creation->failure.status != 0) {
        settle_name(creations, find_name(creations, creation->name));
    } else if (status == 0 && is_whole) {
        status = put_set(creations, creation, writers);
        drop_creation(creations, creation);
    }
    return status;
}

int hvd_set_creations_add(struct hvd_set_creations *creations,
                          const struct hvd_set_wish *wish,
                          struct hvd_decision_writers *writers)
{
    struct hvd_set_creation *creation = NULL;
    bool is_new = false;
    int status;

    if (is_late(creations, wish, writers, &status)) {
        return status;
    }
    status = find_or_create(creations, wish, &creation, &is_new);
    if (status != 0) {
        return status;
    }
    if (!lacks_rank(creation, wish->rank)) {
        status = HVD_ERR_NET;
    } else if (is_new) {
        status = insert_creation(creations, creation);
    }
    if (status != 0) {
        if (is_new) {
            free_creation(creation);
        }
        return status;
    }
    note_rank(creation, wish->rank);
    return decide_creation(creations, creation, is_new, writers);
}
